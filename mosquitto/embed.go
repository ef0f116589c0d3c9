// Package mosquitto holds the configuration of the production MQTT broker as text: what runs in front of a real fleet is
// also what the tests attack and what the embedded broker of a development world obeys.
//
// The broker has two listeners, [TOP-4]. Units connect to one, each with a password and a client id that is forced to
// its serial; the service connects to the other, which units cannot reach. Passwords and access rules are per listener.
package mosquitto

import _ "embed"

// Conf is mosquitto.conf: ports 8883 (units, over TLS) and 1884 (service), files under /mosquitto/config and /mosquitto/data.
//
//go:embed mosquitto.conf
var Conf string

// UnitsACL is the access file of the units' listener, [TOP-1].
//
//go:embed units.acl
var UnitsACL string

// ServiceACL is the access file of the service's listener. It knows one user, ServiceUser.
//
//go:embed service.acl
var ServiceACL string

// ServiceUser is the account that ServiceACL speaks of.
const ServiceUser = "motorpool"
