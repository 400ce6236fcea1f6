{{/* Pools whose sandboxes are pods: empty where there are none. */}}
{{- define "proctor.sandboxPools" -}}
{{- range .Values.pools }}{{ if .sandbox }}{{ .name }} {{ end }}{{ end -}}
{{- end }}

{{- define "proctor.sandboxAccount" -}}{{ include "proctor.name" . }}-sandboxes{{- end }}

{{- define "proctor.sandboxNamespace" -}}
{{- .Values.sandboxes.namespace | default (printf "%s-sandboxes" (include "proctor.name" .)) -}}
{{- end }}

{{/* `pool` is the entry in the values. */}}
{{- define "proctor.sandboxEnv" -}}
{{- with .pool.sandbox }}
- {name: PROCTOR_WORKER_SANDBOX_ENGINE, value: {{ .engine }}}
- {name: PROCTOR_WORKER_SANDBOX_NAMESPACE, value: {{ include "proctor.sandboxNamespace" $.root }}}
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
