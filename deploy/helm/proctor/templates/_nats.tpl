{{/* NATS for trying out. Its users and their permissions are printed by Proctor itself, from the pools file. */}}

{{/* One per pool. */}}
{{- define "proctor.workerUsers" -}}
{{- $users := list -}}
{{- range .Values.pools }}{{ $users = append $users (printf "worker-%s" .name) }}{{ end -}}
{{- toJson $users -}}
{{- end }}

{{- define "proctor.natsConfig" -}}
port: 4222
http: 8222
max_payload: 8388608
jetstream: {store_dir: /data}
{{- if include "proctor.natsCertificates" . }}
tls: {cert_file: /etc/proctor/tls/tls.crt, key_file: /etc/proctor/tls/tls.key, ca_file: /etc/proctor/tls/ca.crt, verify: true}
{{- end }}
include users/users.conf
{{- end }}
