{{/* Environment of the services. Addresses to call are those of Services; addresses to listen on are 0.0.0.0. */}}

{{- define "proctor.schedulerAddress" -}}{{ include "proctor.name" . }}-scheduler.{{ .Release.Namespace }}.svc:8082{{- end }}
{{- define "proctor.resultsAddress" -}}{{ include "proctor.name" . }}-results.{{ .Release.Namespace }}.svc:8083{{- end }}

{{/* What all services have; `service` is GATEWAY, SCHEDULER, RESULTS or WORKER. */}}
{{- define "proctor.env" -}}
- {name: PROCTOR_LOG_LEVEL, value: {{ .root.Values.logLevel }}}
- {name: HOME, value: /tmp}
- {name: TMPDIR, value: /tmp}
{{- if .root.Values.metrics.enabled }}
- {name: PROCTOR_METRICS_ADDRESS, value: "0.0.0.0:{{ .root.Values.metrics.port }}"}
{{- end }}
{{- with .root.Values.traces.endpoint }}
- {name: PROCTOR_TRACES_ENDPOINT, value: {{ . | quote }}}
- {name: PROCTOR_TRACES_SHARE, value: {{ $.root.Values.traces.share | quote }}}
{{- end }}
{{- range $name, $value := .own.settings }}
- {name: PROCTOR_{{ $.service }}_{{ $name }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}}
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- with .own.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* `user` is the user of NATS. */}}
{{- define "proctor.natsEnv" -}}
{{- $nats := .root.Values.nats -}}
{{- $certificates := include "proctor.natsCertificates" .root -}}
{{- $own := printf "%s://%s-nats.%s.svc:4222" (ternary "tls" "nats" (ne $certificates "")) (include "proctor.name" .root) .root.Release.Namespace -}}
{{- $url := ternary $own $nats.url $nats.trial.enabled -}}
{{- $secret := ternary (include "proctor.trialSecret" .root) $nats.passwords.secretName $nats.trial.enabled -}}
{{- if $secret }}
- name: NATS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ ternary (printf "nats-%s" .user) .user $nats.trial.enabled }}}}
{{- $with := list -}}
{{- range splitList "," $url }}{{ $with = append $with (replace "://" (printf "://%s:$(NATS_PASSWORD)@" $.user) (trim .)) }}{{ end }}
- {name: PROCTOR_NATS_URL, value: {{ join "," $with | quote }}}
{{- else }}
- {name: PROCTOR_NATS_URL, value: {{ $url | quote }}}
{{- end }}
{{- if $nats.credentials.secretName }}
- {name: PROCTOR_NATS_CREDENTIALS_FILE, value: /etc/proctor/nats/{{ .user }}.creds}
{{- end }}
{{- if $nats.tls.caSecretName }}
- {name: PROCTOR_NATS_CA_FILE, value: /etc/proctor/nats-ca/{{ $nats.tls.caKey }}}
{{- else if $certificates }}
- {name: PROCTOR_NATS_CA_FILE, value: /etc/proctor/tls/ca.crt}
{{- end }}
{{- if $certificates }}
- {name: PROCTOR_NATS_CERTIFICATE_FILE, value: /etc/proctor/tls/tls.crt}
- {name: PROCTOR_NATS_KEY_FILE, value: /etc/proctor/tls/tls.key}
{{- end }}
{{- end }}

{{- define "proctor.natsMounts" -}}
{{- with .root.Values.nats.credentials.secretName }}
- {name: nats, mountPath: /etc/proctor/nats, readOnly: true}
{{- end }}
{{- with .root.Values.nats.tls.caSecretName }}
- {name: nats-ca, mountPath: /etc/proctor/nats-ca, readOnly: true}
{{- end }}
{{- end }}

{{/* Only the file of its own user is in a pod. */}}
{{- define "proctor.natsVolumes" -}}
{{- with .root.Values.nats.credentials.secretName }}
- name: nats
  secret: {secretName: {{ . }}, defaultMode: 0440, items: [{key: {{ $.user }}.creds, path: {{ $.user }}.creds}]}
{{- end }}
{{- with .root.Values.nats.tls.caSecretName }}
- {name: nats-ca, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end }}
{{- end }}

{{/* `service` has a role of its own; `key` is the key with its DSN in the secret of an existing Postgres. */}}
{{- define "proctor.postgresEnv" -}}
{{- include "proctor.postgresDsn" (dict "root" .root "service" .service "key" .key "name" "PROCTOR_POSTGRES_DSN") }}
- {name: PROCTOR_MIGRATE_ON_START, value: {{ .root.Values.postgres.migrateOnStart | quote }}}
{{- end }}

{{/* The size of the volume of a Postgres that the chart makes, so that work stops before it is full. */}}
{{- define "proctor.postgresDiskEnv" -}}
{{- $postgres := .Values.postgres -}}
{{- $size := "" }}
{{- if $postgres.trial.enabled }}{{ $size = $postgres.trial.size }}{{ else if $postgres.cluster.enabled }}{{ $size = $postgres.cluster.size }}{{ end }}
{{- $power := index (dict "Mi" 2 "Gi" 3 "Ti" 4) (regexFind "[A-Z]i$" $size) }}
{{- if and $power (regexMatch "^[0-9]+[A-Z]i$" $size) (not (hasKey .Values.scheduler.settings "POSTGRES_DISK_BYTES")) }}
{{- $bytes := regexFind "^[0-9]+" $size | int64 }}
{{- range until $power }}{{ $bytes = mul $bytes 1024 }}{{ end }}
- {name: PROCTOR_SCHEDULER_POSTGRES_DISK_BYTES, value: {{ $bytes | quote }}}
{{- end }}
{{- end }}

{{/* `name` is the variable. */}}
{{- define "proctor.postgresDsn" -}}
{{- $postgres := .root.Values.postgres -}}
{{- if $postgres.trial.enabled }}
{{- $password := .name | trimPrefix "PROCTOR_" | replace "_DSN" "_PASSWORD" }}
- name: {{ $password }}
  valueFrom: {secretKeyRef: {name: {{ include "proctor.trialSecret" .root }}, key: postgres-{{ .service }}}}
- {name: {{ .name }}, value: "postgresql://proctor_{{ .service }}:$({{ $password }})@{{ include "proctor.name" .root }}-postgres.{{ .root.Release.Namespace }}.svc:5432/proctor"}
{{- else }}
- name: {{ .name }}
  {{- if $postgres.cluster.enabled }}
  valueFrom: {secretKeyRef: {name: {{ include "proctor.name" .root }}-postgres-app, key: uri}}
  {{- else }}
  valueFrom: {secretKeyRef: {name: {{ $postgres.existing.secretName }}, key: {{ .key }}}}
  {{- end }}
{{- end }}
{{- end }}

{{/* Of the gateway, where users have an OpenID provider. */}}
{{- define "proctor.oidcEnv" -}}
{{- if .issuer }}
- {name: PROCTOR_GATEWAY_OIDC_ISSUER, value: {{ .issuer | quote }}}
- {name: PROCTOR_GATEWAY_OIDC_CLIENT_ID, value: {{ .clientId | quote }}}
- {name: PROCTOR_GATEWAY_OIDC_REDIRECT_URL, value: {{ .redirectUrl | quote }}}
- {name: PROCTOR_GATEWAY_OIDC_ROLES, value: {{ toJson .roles | quote }}}
- {name: PROCTOR_GATEWAY_OIDC_USER_CLAIM, value: {{ .userClaim | quote }}}
- {name: PROCTOR_GATEWAY_OIDC_GROUPS_CLAIM, value: {{ .groupsClaim | quote }}}
- {name: PROCTOR_GATEWAY_OIDC_SESSION_MINUTES, value: {{ .sessionMinutes | quote }}}
{{- with .defaultRole }}
- {name: PROCTOR_GATEWAY_OIDC_DEFAULT_ROLE, value: {{ . | quote }}}
{{- end }}
{{- with .clientSecret.secretName }}
- name: PROCTOR_GATEWAY_OIDC_CLIENT_SECRET
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $.clientSecret.key }}}}
{{- end }}
{{- end }}
{{- end }}

{{- define "proctor.dispatchProofKeyEnv" -}}
{{- $given := .Values.dispatchProofKey.secretName -}}
{{- if or $given .Values.nats.trial.enabled }}
- name: PROCTOR_DISPATCH_PROOF_KEY
  valueFrom: {secretKeyRef: {name: {{ $given | default (include "proctor.trialSecret" .) }}, key: {{ ternary .Values.dispatchProofKey.key "dispatch-proof-key" (ne $given "") }}}}
{{- end }}
{{- end }}

{{- define "proctor.callerKeyEnv" -}}
{{- $given := .Values.callerKey.secretName -}}
{{- if or $given .Values.nats.trial.enabled }}
- name: PROCTOR_CALLER_KEY
  valueFrom: {secretKeyRef: {name: {{ $given | default (include "proctor.trialSecret" .) }}, key: {{ ternary .Values.callerKey.key "caller-key" (ne $given "") }}}}
{{- end }}
{{- end }}

{{- define "proctor.trialSecret" -}}{{ include "proctor.name" . }}-trial{{- end }}

{{- define "proctor.metricsPort" -}}
{{- if .Values.metrics.enabled }}
- {name: metrics, containerPort: {{ .Values.metrics.port }}}
{{- end }}
{{- end }}
