// Package haproxy has the configurations of the load balancers in front of the instances, and of
// several MQTT brokers.
package haproxy

import _ "embed"

// Conf is HAProxy's configuration in front of the instances.
//
//go:embed haproxy.cfg
var Conf string

// MQTTConf is HAProxy's configuration in front of MQTT brokers, the shards.
//
//go:embed mqtt.cfg
var MQTTConf string
