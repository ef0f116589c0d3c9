// Package haproxy has the configuration of the load balancer in front of the instances.
package haproxy

import _ "embed"

// Conf is HAProxy's configuration.
//
//go:embed haproxy.cfg
var Conf string
