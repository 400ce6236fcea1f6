{{/* `pool` is the entry in the values, here and below. */}}
{{- define "proctor.sandboxAccount" -}}{{ include "proctor.name" .root }}-sandboxes-{{ .pool.name }}{{- end }}

{{- define "proctor.sandboxNamespace" -}}
{{- .root.Values.sandboxes.namespacePrefix | default (printf "%s-sandboxes" (include "proctor.name" .root)) }}-{{ .pool.name -}}
{{- end }}

{{- define "proctor.sandboxEnv" -}}
{{- with .pool.sandbox }}
- {name: PROCTOR_WORKER_SANDBOX_ENGINE, value: {{ .engine }}}
- {name: PROCTOR_WORKER_SANDBOX_NAMESPACE, value: {{ include "proctor.sandboxNamespace" $ }}}
{{- with .image }}
- {name: PROCTOR_WORKER_SANDBOX_IMAGE, value: {{ . | quote }}}
{{- end }}
{{- with .images }}
- {name: PROCTOR_WORKER_SANDBOX_IMAGES, value: {{ join "," . | quote }}}
{{- end }}
{{- with .runtimeClassName }}
- {name: PROCTOR_WORKER_SANDBOX_RUNTIME_CLASS, value: {{ . | quote }}}
{{- end }}
{{- $sandbox := . }}
{{- range $field, $setting := dict "maxCpus" "SANDBOX_MAX_CPUS" "maxMemoryBytes" "SANDBOX_MAX_MEMORY_BYTES" "sandboxSlots" "SANDBOX_SLOTS" "rolloutSlots" "ROLLOUT_SLOTS" }}
{{- with get $sandbox $field }}
- {name: PROCTOR_WORKER_{{ $setting }}, value: {{ toJson . | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
