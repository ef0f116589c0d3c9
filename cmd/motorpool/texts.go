package main

import "motorpool/internal/settings"

// helpTexts are the help texts of flags and commands that do not fit into their tags.
var helpTexts = settings.Texts{
	"activity_from": "From this day or instant on, such as 2026-11-01 or 2026-11-01T12:00:00Z, in UTC (default the beginning)",
	"agency_until": "Until when it is valid: a duration from now such as 720h, a date such as 2027-01-31 (its beginning, UTC), or a " +
		"time such as 2027-01-31T12:00:00Z",
	"rules_set": "Set them to those of this JSON file, as --output json prints them; what it leaves out has its default; -: standard " +
		"input (default show them)",
	"device_protocol": "Protocol of the units; for ovms and teltonika, it prints what to enter into each",
	"device_vehicle_type": "Vehicle type of an OVMS module, such as NL: then it also prints a PIN, which lock and unlock need " +
		"(default none: the module is only observed)",
	"device_server":           "Public name of the MQTT broker, as the units reach it; needed with a protocol other than v1",
	"operate_idempotency_key": "A name for this command: with the same one, within a day, it is not sent twice (default none)",
	"operator_role":           "admin; operator, who neither halts commands nor moves money; or viewer, who only reads",
	"operator_scope": "Scopes, separated by spaces, as access tokens have them: all_agencies, halt, agency_keys; see docs/tokens.md " +
		"(default none)",
	"serve_grant_to": "Then grant this database role the rights that 'serve --no-migrate' needs, and no others (default none)",
	"sign_body": "File with the request's body, byte for byte; - is standard input (default no body). Send it with curl " +
		"--data-binary: -d takes its line ends away",
	"sign_nonce":  "Nonce to sign with, likewise: 16 to 64 characters of base64url (default a random one)",
	"token_key":   "Private JWKS; the service must know its public half (--token-keys)",
	"token_role":  "admin; operator, who neither halts commands nor moves money; viewer, who only reads; or client",
	"token_scope": "Scopes, separated by spaces, as all_agencies; see docs/tokens.md (default none)",
	"unit_rotate": "Replace the passwords of units, and print the new ones. The old ones become invalid immediately; OVMS modules, " +
		"which never reconnect after a refused login, get the new one first",
	"unit_mosquitto_pid_file": "Mosquitto's pid_file: it then reads the changed files (default none: you send SIGHUP yourself)",
	"unit_password_file":      "Write the passwords into this new file, mode 0600, instead of printing them",
	"remove_mqtt_url": "Service's listener of the MQTT broker, to end the units' open connections and mark them offline; several as " +
		"for 'motorpool serve' (default none: connections with a certificate stay open)",
	"remove_mqtt_cert": "Certificate of the service at the MQTT broker, as PEM (default none)",
	"rotate_protocol":  "Protocol of the units. With --mqtt-url, OVMS modules are recognised without it",
	"rotate_stopped":   "The OVMS modules were stopped in their shells ('server v3 stop'), so that none logs in meanwhile",
}
