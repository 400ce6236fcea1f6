{{/* Connections to Postgres, by the settings of the services; tests hold the numbers to those. */}}

{{/* Of one pod. `more` are connections outside of its pools. */}}
{{- define "proctor.connectionsOf" -}}
{{- $settings := .settings -}}
{{- $sum := .more -}}
{{- range $name, $usual := .pools }}{{ $sum = add $sum (get $settings $name | default $usual | int) }}{{ end -}}
{{- $sum -}}
{{- end }}

{{/* Of all pods, with one more of each service during an update, and ten for operators and persons. */}}
{{- define "proctor.connections" -}}
{{- /* Each scheduler has one more, for the lock of the leader. */ -}}
{{- $scheduler := include "proctor.connectionsOf" (dict "settings" .Values.scheduler.settings "more" 1 "pools" (dict "POSTGRES_CONNECTIONS" 8 "READ_CONNECTIONS" 4)) -}}
{{- $results := include "proctor.connectionsOf" (dict "settings" .Values.results.settings "more" 0 "pools" (dict "POSTGRES_CONNECTIONS" 8 "RECORDING_CONNECTIONS" 4 "READ_CONNECTIONS" 8)) -}}
{{- add (mul (add .Values.scheduler.replicas 1) (int $scheduler)) (mul (add .Values.results.replicas 1) (int $results)) 10 -}}
{{- end }}

{{/* For a Postgres that the chart makes; never less than Postgres's own default. */}}
{{- define "proctor.maxConnections" -}}{{ max 100 (include "proctor.connections" . | int) }}{{- end }}
