package app

import "motorpool/internal/settings"

// HelpTexts are the help texts of Config that do not fit into its tags, for settings.Reader.
var HelpTexts = settings.Texts{
	"http_cert": "Certificate of the public API with its chain, as PEM; read again when it changes (default none: plain HTTP, for a " +
		"proxy with TLS)",
	"internal": "Address of metrics, detailed readiness and profiles; only your monitoring may reach it",
	"health":   "Address of /healthz and /readyz for load balancers and orchestrators, which may reach it; empty: none",
	"drain": "How long to go on serving after SIGTERM, with /readyz at 503, so that load balancers take the instance out first; 0 to " +
		"5m",
	"trusted_proxies": "Networks of the proxies whose X-Forwarded-For is trusted, separated by commas, such as 10.0.0.0/24 (default " +
		"none: a caller's address is that of its connection)",
	"max_connections": "Connections to the public API that may be open; beyond that the oldest one without a valid token is closed",
	"redis_url":       "Redis: redis://host:port/db, rediss:// with TLS; several addresses for Sentinel or Cluster: see docs/servers.md",
	"redis_cert":      "Certificate of the service at Redis, as PEM; read again when it changes (default none)",
	"state_interval": "Interval of writes of a vehicle's reported state to Postgres, if nothing urgent is reported; until then only " +
		"Redis has it, so a loss of Redis loses at most that. 1s to 5m",
	"telemetry_retention": "How long to keep samples of each vehicle's energy, 12 V battery, speed, signal and position, 0 to 366 " +
		"days; 0: nothing is written, and what there is is removed. Positions over time are personal data: see docs/operating.md",
	"mqtt_url": "Service's listener of the MQTT broker: tcp:// or ssl://; the nodes of a cluster separated by commas; for shards, " +
		"repeated, or separated by spaces. See docs/servers.md",
	"mqtt_password": "Its password; better set by the environment (default none)",
	"mqtt_ca":       "Certificates that sign the MQTT broker's, as PEM (default the system's)",
	"mqtt_cert":     "Certificate of the service at the MQTT broker, as PEM; read again when it changes (default none)",
	"signing_keys":  "Private keys that sign commands, as JWKS; the first one signs. See 'motorpool keys --help'",
	"token_keys":    "Public keys of the access tokens' issuer, as JWKS: a file, or an https:// URL",
	"token_typ": "Values of the header parameter typ that access tokens may have, separated by commas; 'absent' accepts tokens " +
		"without it, too. See docs/tokens.md",
	"claim_role":    "Claim that names the role; a dotted path such as realm_access.roles leads into objects. See docs/tokens.md",
	"role_operator": "Value of the role claim for operators, who command vehicles, but neither halt commands nor move money",
	"cors_origins": "Origins whose pages may call the API from a browser, separated by commas, such as https://console.example.com " +
		"(default none)",
	"vehicle_rate":  "Control commands a minute to one vehicle, from all callers together; 0: any number",
	"refresh_rate":  "Times a minute that one vehicle's unit may be queried for its state, by all callers together; 0: any number",
	"bulk_rate":     "Vehicles a minute that one administrator may name in bulk commands; 0: any number",
	"card_rate":     "Cards an hour that one client may try to add, make its default, start or extend with; 0: any number",
	"admin_streams": "Streams of events that one administrator may have open at an instance; 0: any number",
	"alertmanager_url": "Alertmanagers that get the open alerts of vehicles, separated by commas, such as http://127.0.0.1:9093. See " +
		"docs/vehicle-alerts.md (default none)",
	"otlp_url": "Collector that gets OpenTelemetry traces by OTLP/HTTP, such as http://127.0.0.1:4318. See docs/metrics.md (default " +
		"none: nothing is traced)",
	"geocoder_url": "Nominatim-compatible server for the address of a place where a vehicle stands: positions leave the " +
		"installation. See docs/operating.md (default none: no request is sent)",
	"agency_secrets_key": "Key that encrypts the secrets of agency keys: 32 bytes in hexadecimal digits or base64; of several, " +
		"separated by commas, the first encrypts and all decrypt. Better set by the environment. See docs/keys.md (default none: " +
		"clients are refused)",
	"stripe_key": "Secret (sk_…) or restricted (rk_…) key of the account at Stripe that holds cards and moves money; sk_live_ and " +
		"rk_live_ move real money. Better set by the environment. See docs/payments.md (default none: there are no payments)",
	"stripe_url": "URL of Stripe's API, or of a compatible server",
	"stripe_webhook_secret": "Signing secret of the webhook endpoint /webhooks/stripe (whsec_…); better set by the environment " +
		"(default none: webhook notices are refused)",
	"console_url": "URL at which browsers reach the service, such as https://fleet.example.com: people can sign in there. See " +
		"docs/console.md (default none)",
	"oidc_issuer": "OpenID Connect issuer where people sign in; its access tokens are checked as all others (default none: people " +
		"sign in with a password, see docs/access.md)",
	"oidc_client_id":     "The service's client id at the issuer (default none)",
	"oidc_client_secret": "Its secret; better set by the environment (default none: a public client)",
	"oidc_scopes": "Scopes to ask for besides openid, separated by commas; without offline_access many issuers end a session with " +
		"its first access token",
	"oidc_audience": "Audience to ask for, where the issuer requires it (default none)",
	"map_style": "MapLibre style of the console's map; browsers load it and its parts from its host. See docs/console.md (default " +
		"none: the outlines of countries)",
	"allow_unsafe_postgres": "Use a Postgres that runs without fsync or full_page_writes, so that a crash of its machine loses " +
		"commands that were executed. For development alone",
}
