{{/* What the schema of the values cannot say: each refusal is one sentence with the values to change. */}}
{{- define "proctor.checks" -}}
{{- $v := .Values -}}
{{- $ways := list $v.postgres.existing.secretName $v.postgres.cluster.enabled $v.postgres.trial.enabled | compact -}}
{{- if eq (len $ways) 0 }}{{ fail "No Postgres: set postgres.existing.secretName, postgres.cluster.enabled or postgres.trial.enabled." }}{{ end -}}
{{- if gt (len $ways) 1 }}{{ fail "Several Postgres: set only one of postgres.existing.secretName, postgres.cluster.enabled and postgres.trial.enabled." }}{{ end -}}
{{- if and (not $v.nats.url) (not $v.nats.trial.enabled) }}{{ fail "No NATS: set nats.url or nats.trial.enabled." }}{{ end -}}
{{- if and $v.nats.url $v.nats.trial.enabled }}{{ fail "Several NATS: set only one of nats.url and nats.trial.enabled." }}{{ end -}}
{{- if contains "@" $v.nats.url }}{{ fail "nats.url contains a user or password: name a secret in nats.passwords.secretName instead." }}{{ end -}}
{{- if and $v.nats.passwords.secretName $v.nats.credentials.secretName }}{{ fail "Two ways to log in to NATS: set only one of nats.passwords.secretName and nats.credentials.secretName." }}{{ end -}}
{{- if and $v.nats.url (not (or $v.nats.passwords.secretName $v.nats.credentials.secretName $v.nats.tls.clientCertificates)) }}{{ fail "Whoever reaches nats.url may do everything there: set nats.passwords.secretName, nats.credentials.secretName or nats.tls.clientCertificates." }}{{ end -}}
{{- if and (not $v.dispatchProofKey.secretName) (not $v.nats.trial.enabled) }}{{ fail "No key of dispatch proofs: set dispatchProofKey.secretName to a secret with 16 characters or more, such as openssl rand -hex 24 makes." }}{{ end -}}
{{- if and (not $v.callerKey.secretName) (not $v.nats.trial.enabled) }}{{ fail "No key by which the gateway signs its calls: set callerKey.secretName to a secret with 16 characters or more, such as openssl rand -hex 24 makes." }}{{ end -}}
{{- if and (not $v.gateway.apiKeys.secretName) (not $v.gateway.oidc.issuer) (not $v.gateway.allowAnonymous) }}{{ fail "Nobody may call the gateway: set gateway.apiKeys.secretName or gateway.oidc.issuer, or gateway.allowAnonymous=true to let all who reach it do everything." }}{{ end -}}
{{- if and $v.gateway.oidc.issuer (not $v.gateway.oidc.clientId) }}{{ fail "gateway.oidc.issuer needs gateway.oidc.clientId, the name of this gateway at the provider." }}{{ end -}}
{{- if and $v.gateway.oidc.issuer (not $v.gateway.oidc.roles) (not $v.gateway.oidc.defaultRole) }}{{ fail "With gateway.oidc.issuer nobody has a role: set gateway.oidc.roles or gateway.oidc.defaultRole." }}{{ end -}}
{{- if and $v.gateway.allowAnonymous (has $v.gateway.service.type (list "LoadBalancer" "NodePort")) }}{{ fail (printf "gateway.allowAnonymous lets all who reach the gateway do everything, and gateway.service.type %s opens it to others than the cluster: set gateway.apiKeys.secretName instead." $v.gateway.service.type) }}{{ end -}}
{{- $volume := or $v.objectStore.volume.existingClaim $v.objectStore.volume.size -}}
{{- if and $v.objectStore.url $volume }}{{ fail "Two object stores: set only one of objectStore.url and objectStore.volume." }}{{ end -}}
{{- if and (gt (int $v.scheduler.replicas) 1) (not $v.objectStore.url) (not $volume) }}{{ fail "scheduler.replicas is above 1, and replicas share no folder: set objectStore.url to a bucket, or objectStore.volume to a claim that several pods can write, or scheduler.replicas=1." }}{{ end -}}
{{- if and (gt (int $v.scheduler.replicas) 1) $v.objectStore.volume.size (not (has "ReadWriteMany" $v.objectStore.volume.accessModes)) }}{{ fail "scheduler.replicas is above 1: objectStore.volume.accessModes needs ReadWriteMany." }}{{ end -}}
{{- $backups := list $v.backup.url $v.backup.volume.existingClaim $v.backup.volume.size | compact -}}
{{- if and (or $v.backup.enabled $v.backup.restore) (ne (len $backups) 1) }}{{ fail "Backups need one place: set one of backup.url, backup.volume.existingClaim and backup.volume.size." }}{{ end -}}
{{- if and (or $v.backup.enabled $v.backup.restore) (not $v.objectStore.url) (not $volume) }}{{ fail "A backup reaches no folder of the scheduler's pod: set objectStore.url to a bucket, or objectStore.volume to a claim." }}{{ end -}}
{{- if and $v.gateway.ingress.enabled $v.gateway.httpRoute.enabled }}{{ fail "Two ways to the gateway: set only one of gateway.ingress.enabled and gateway.httpRoute.enabled." }}{{ end -}}
{{- if and (or $v.gateway.ingress.enabled $v.gateway.httpRoute.enabled) (not $v.gateway.hosts) }}{{ fail "gateway.hosts is empty: list the names that clients call the gateway by." }}{{ end -}}
{{- $connections := include "proctor.connections" . | int -}}
{{- $given := get $v.postgres.cluster.parameters "max_connections" -}}
{{- if and $v.postgres.cluster.enabled $given (lt (int $given) $connections) }}{{ fail (printf "postgres.cluster.parameters.max_connections is %s, and this release may open %d: raise it or leave it out, or lower the replicas or the POSTGRES_, READ_ and RECORDING_CONNECTIONS in scheduler.settings and results.settings." (toString $given) $connections) }}{{ end -}}
{{- if and $v.postgres.cluster.enabled (gt (int $v.postgres.cluster.instances) 1) (ge (int $v.postgres.cluster.synchronous) (int $v.postgres.cluster.instances)) }}{{ fail (printf "postgres.cluster.synchronous is %d: of %d instances at most %d are standbys that a commit can wait for." (int $v.postgres.cluster.synchronous) (int $v.postgres.cluster.instances) (sub (int $v.postgres.cluster.instances) 1)) }}{{ end -}}
{{- if and $v.nats.tls.clientCertificates (not $v.tls.enabled) }}{{ fail "nats.tls.clientCertificates needs certificates: set tls.enabled." }}{{ end -}}
{{- range include "proctor.tlsComponents" . | fromJsonArray }}
{{- if and (not $v.tls.issuer.name) (not (get $v.tls.secrets .)) }}{{ fail (printf "tls.enabled is set and %s has no certificate: set tls.issuer.name to an issuer of cert-manager, or tls.secrets.%s to a secret with tls.crt, tls.key and ca.crt." . .) }}{{ end -}}
{{- end }}
{{- if not $v.pools }}{{ fail "No pools: list at least one under pools, with the models that it serves." }}{{ end -}}
{{- $names := dict -}}
{{- range $p := $v.pools }}
{{- if hasKey $names $p.name }}{{ fail (printf "pools lists %s twice: give each pool a name of its own." $p.name) }}{{ end -}}
{{- $_ := set $names $p.name true -}}
{{- if and $p.sandbox (eq (include "proctor.sandboxNamespace" (dict "root" $ "pool" $p)) $.Release.Namespace) }}{{ fail (printf "The sandboxes of pool %s would be in %s, where Proctor itself is: set sandboxes.namespacePrefix." $p.name $.Release.Namespace) }}{{ end -}}
{{- include "proctor.checkPool" (dict "pool" $p "values" $v) -}}
{{- end }}
{{- include "proctor.checkUrls" $v -}}
{{- include "proctor.checkKinds" . -}}
{{- end }}

{{/* Addresses are written into objects that more may read than secrets. Their services have other ways to log in. */}}
{{- define "proctor.checkUrls" -}}
{{- $urls := dict "traces.endpoint" .traces.endpoint "gateway.oidc.issuer" .gateway.oidc.issuer "gateway.oidc.redirectUrl" .gateway.oidc.redirectUrl "objectStore.url" .objectStore.url "backup.url" .backup.url -}}
{{- range $i, $url := .allowedBaseUrls }}{{ $_ := set $urls (printf "allowedBaseUrls[%d]" $i) $url }}{{ end -}}
{{- range $name, $url := $urls }}
{{- if $url }}{{ if (urlParse $url).userinfo }}{{ fail (printf "%s contains a user or password: leave it out." $name) }}{{ end }}{{ end -}}
{{- end }}
{{- end }}

{{- define "proctor.checkPool" -}}
{{- $p := .pool -}}
{{- if eq $p.engine "vllm" }}
{{- if not $p.models }}{{ fail (printf "pool %s has the engine vllm and no models: list them with name and path." $p.name) }}{{ end -}}
{{- range $p.models }}
{{- $args := .engineArgs | default dict -}}
{{- $needs := mul (get $args "tensor_parallel_size" | default 1 | int) (get $args "pipeline_parallel_size" | default 1 | int) -}}
{{- $has := mul (int ($p.gpus | default 0)) (int ($p.nodes | default 1)) -}}
{{- if and (gt $needs 1) (gt $needs $has) }}{{ fail (printf "pool %s: model %s needs %d GPUs (tensor_parallel_size × pipeline_parallel_size), and gpus × nodes is %d." $p.name .name $needs $has) }}{{ end -}}
{{- if and .lora (not .base) }}{{ fail (printf "pool %s: the adapter %s (lora) needs base, a model of the pool or its path." $p.name .name) }}{{ end -}}
{{- if and (not .lora) (not .path) }}{{ fail (printf "pool %s: model %s needs path, a folder or a hub id." $p.name .name) }}{{ end -}}
{{- end }}
{{- else if not $p.provider }}{{ fail (printf "pool %s has the engine %s and no provider: set provider.name and provider.baseUrl." $p.name $p.engine) }}
{{- end }}
{{- if and $p.provider (contains "@" ($p.provider.baseUrl | default "")) }}{{ fail (printf "pool %s: provider.baseUrl contains a user or password: name a secret in provider.apiKey instead." $p.name) }}{{ end -}}
{{- if and $p.max (gt (int ($p.min | default 0)) (int $p.max)) }}{{ fail (printf "pool %s: min is above max." $p.name) }}{{ end -}}
{{- if and (gt (int ($p.nodes | default 1)) 1) (ne $p.engine "vllm") }}{{ fail (printf "pool %s: only the engine vllm spans several nodes." $p.name) }}{{ end -}}
{{- if and (not .values.keda.enabled) (not .values.omitReplicas) (eq (int ($p.min | default 0)) 0) }}{{ fail (printf "pool %s would never have a worker: without keda.enabled, set min to at least 1, or omitReplicas where another autoscaler sets them." $p.name) }}{{ end -}}
{{- end }}

{{/* Helm itself says only "no matches for kind". A rendering without a cluster has the core kinds only. */}}
{{- define "proctor.checkKinds" -}}
{{- if .Values.requireKinds }}
{{- $spans := false -}}
{{- range .Values.pools }}{{ if gt (int (.nodes | default 1)) 1 }}{{ $spans = true }}{{ end }}{{ end -}}
{{- range list (list $spans "leaderworkerset.x-k8s.io/v1" "pools[].nodes" "LeaderWorkerSet") (list (and .Values.tls.enabled (ne .Values.tls.issuer.name "")) "cert-manager.io/v1" "tls.issuer.name" "cert-manager") (list .Values.keda.enabled "keda.sh/v1alpha1" "keda.enabled" "KEDA") (list .Values.postgres.cluster.enabled "postgresql.cnpg.io/v1" "postgres.cluster.enabled" "CloudNativePG") (list .Values.gateway.httpRoute.enabled "gateway.networking.k8s.io/v1" "gateway.httpRoute.enabled" "the Gateway API") (list .Values.metrics.monitors.enabled "monitoring.coreos.com/v1" "metrics.monitors.enabled" "the Prometheus operator") }}
{{- if and (index . 0) (not ($.Capabilities.APIVersions.Has (index . 1))) }}{{ fail (printf "%s needs %s in the cluster (%s): install it first, or set requireKinds=false to render without looking." (index . 2) (index . 3) (index . 1)) }}{{ end -}}
{{- end }}
{{- end }}
{{- end }}
