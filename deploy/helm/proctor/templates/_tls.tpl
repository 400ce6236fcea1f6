{{/* mTLS: certificates by component, in a secret of each, which Kubernetes renews in the pods. */}}

{{- define "proctor.natsCertificates" -}}
{{- if and .Values.tls.enabled (or .Values.nats.trial.enabled .Values.nats.tls.clientCertificates) }}true{{ end -}}
{{- end }}

{{/* All that have a certificate, as a JSON list. */}}
{{- define "proctor.tlsComponents" -}}
{{- $found := list -}}
{{- if .Values.tls.enabled }}
{{- $found = list "gateway" "scheduler" "results" -}}
{{- if .Values.keda.enabled }}{{ $found = append $found "keda" }}{{ end -}}
{{- if .Values.nats.trial.enabled }}{{ $found = append $found "nats" }}{{ end -}}
{{- if include "proctor.natsCertificates" . }}
{{- $found = concat $found (include "proctor.workerUsers" . | fromJsonArray) -}}
{{- end }}
{{- end }}
{{- toJson $found -}}
{{- end }}

{{- define "proctor.tlsSecret" -}}
{{- get .root.Values.tls.secrets .component | default (printf "%s-%s-tls" (include "proctor.name" .root) .component) -}}
{{- end }}

{{/* The name by which a component is known. That of a service is the one that others dial. */}}
{{- define "proctor.tlsName" -}}
{{- $name := include "proctor.name" .root -}}
{{- if hasPrefix "worker-" .component }}{{ .component }}.{{ $name }}{{ else }}{{ $name }}-{{ .component }}{{ end }}.{{ .root.Release.Namespace }}.svc
{{- end }}

{{/* Of what calls other services, or is called. */}}
{{- define "proctor.tlsEnv" -}}
{{- if .Values.tls.enabled }}
- {name: PROCTOR_TLS_CERTIFICATE_FILE, value: /etc/proctor/tls/tls.crt}
- {name: PROCTOR_TLS_KEY_FILE, value: /etc/proctor/tls/tls.key}
- {name: PROCTOR_TLS_CA_FILE, value: /etc/proctor/tls/ca.crt}
{{- end }}
{{- end }}

{{/* Of what is called: by whom, for all services or for the one that is named, and where probes ask, which show no certificate. */}}
{{- define "proctor.tlsServerEnv" -}}
{{- $root := .root -}}
{{- include "proctor.tlsEnv" $root }}
{{- if $root.Values.tls.enabled }}
{{- $names := list -}}
{{- range $component, $service := .clients }}{{ $names = append $names (printf "%s%s" (include "proctor.tlsName" (dict "root" $root "component" $component)) (ternary "" (printf "=%s" $service) (eq $service ""))) }}{{ end }}
- {name: PROCTOR_TLS_CLIENT_NAMES, value: {{ join "," $names | quote }}}
- {name: PROCTOR_{{ .service }}_HEALTH_ADDRESS, value: "0.0.0.0:8084"}
{{- end }}
{{- end }}

{{- define "proctor.tlsMount" -}}
{{- if has .component (include "proctor.tlsComponents" .root | fromJsonArray) }}
- {name: tls, mountPath: /etc/proctor/tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "proctor.tlsVolume" -}}
{{- if has .component (include "proctor.tlsComponents" .root | fromJsonArray) }}
- {name: tls, secret: {secretName: {{ include "proctor.tlsSecret" . }}, defaultMode: 0440}}
{{- end }}
{{- end }}
