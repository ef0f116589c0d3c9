// Package prometheus has the shipped configuration of Prometheus, for programs that start one.
package prometheus

import _ "embed"

// Rules are the alert rules.
//
//go:embed rules.yml
var Rules string

// Config is the configuration, which names the file of the rules.
//
//go:embed prometheus.yml
var Config string
