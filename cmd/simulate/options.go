package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"motorpool/internal/keyfile"
	"motorpool/simulator"
)

type options struct {
	Broker   string        `help:"MQTT broker of the units, tcp://host:port or tls://host:port." default:"tcp://127.0.0.1:1883"`
	CA       string        `help:"The broker's authority, as PEM (default the system's)." type:"existingfile" placeholder:"FILE"`
	Keys     string        `help:"Public keys that sign commands, as JWKS; changes are noticed." required:"" placeholder:"FILE|URL"`
	Units    string        `help:"Units by vehicle: {\"1\":{\"unit\":\"…\",\"password\":\"…\"},…}." type:"existingfile" placeholder:"FILE"`
	Demo     bool          `help:"With --units: vehicles 1 to 10 are the demo cars, each with its own trouble."`
	Cars     int           `help:"Instead of --units: this many healthy cars, named by prefix and number."`
	Prefix   string        `help:"With --cars: what serials begin with." default:"sim-"`
	Secret   string        `help:"With --cars: passwords are derived from it."`
	Latency  string        `help:"Radio of cars: fast (milliseconds), or cellular (mostly 2 to 10 s)." enum:"fast,cellular" default:"fast"`
	Interval time.Duration `help:"Between two whole reports of a car." default:"20s"`
	Stagger  time.Duration `help:"Between the first connections of two cars." default:"2ms"`
	Seed     uint64        `help:"Of everything random." default:"1"`
	Memory   string        `help:"Folder for what units remember when this process restarts. Default: they forget." type:"existingdir"`
	Record   string        `help:"Flight recorder: a file that gets one line of JSON for each event." type:"path"`
	Verbose  bool          `help:"Log every connection." short:"v"`

	Faults faultOptions `embed:"" group:"Faults, as probabilities from 0 to 1 unless noted. A demo car has its own faults"`
}

type faultOptions struct {
	Drop        float64       `help:"A command is lost on the way." placeholder:"P"`
	DropAnswers float64       `help:"An answer is lost on the way." placeholder:"P"`
	Duplicate   float64       `help:"An answer is sent twice." placeholder:"P"`
	Reorder     float64       `help:"An answer is held back, so that later ones overtake." placeholder:"P"`
	Delay       time.Duration `help:"More time for every command and its answer."`
	Refuse      float64       `help:"A unit loses its clock for a command, and rejects it." placeholder:"P"`
	Fail        float64       `help:"A car tries, and nothing moves." placeholder:"P"`
	Silent      float64       `help:"A car, chosen at start, never acts or answers." placeholder:"P"`
	Offline     float64       `help:"A car, chosen at start, never connects." placeholder:"P"`
	Skew        time.Duration `help:"Cars' clocks are wrong by up to this, either way."`
}

// Validate returns all errors of the flags, joined.
func (o options) Validate() error {
	var problems []error
	complain := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	complain((o.Units == "") == (o.Cars == 0), "want either --units or --cars")
	complain(o.Cars < 0, "--cars %d: want a positive number", o.Cars)
	complain(o.Cars > 0 && o.Units == "" && o.Secret == "", "--cars needs --secret")
	complain(o.Demo && o.Units == "", "--demo needs --units")
	complain(o.Interval <= 0, "--interval %v: want more than zero", o.Interval)
	complain(o.Stagger < 0, "--stagger %v: want zero or more", o.Stagger)
	f := o.Faults
	for _, p := range []struct {
		flag   string
		chance float64
	}{
		{"drop", f.Drop}, {"drop-answers", f.DropAnswers}, {"duplicate", f.Duplicate}, {"reorder", f.Reorder},
		{"refuse", f.Refuse}, {"fail", f.Fail}, {"silent", f.Silent}, {"offline", f.Offline},
	} {
		complain(!(p.chance >= 0 && p.chance <= 1), "--%s %g: want a probability from 0 to 1", p.flag, p.chance)
	}
	complain(f.Delay < 0, "--delay %v: want zero or more", f.Delay)
	complain(f.Skew < 0, "--skew %v: want zero or more", f.Skew)
	return errors.Join(problems...)
}

func (o options) logLevel() string {
	if o.Verbose {
		return "debug"
	}
	return "info"
}

func (o options) latency() simulator.Latency {
	if o.Latency == "cellular" {
		return simulator.Cellular
	}
	return simulator.Fast
}

// recorder returns the flight recorder, and a function that closes its file. It keeps nothing in
// memory: a fleet may run for weeks.
func (o options) recorder() (*simulator.Recorder, func() error, error) {
	if o.Record == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := os.OpenFile(o.Record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("open flight recorder: %w", err)
	}
	r := &simulator.Recorder{Out: file}
	return r, func() error { return errors.Join(r.Err(), file.Close()) }, nil
}

func (o options) radio() (simulator.Radio, error) {
	if o.CA == "" {
		return simulator.MQTT{Broker: o.Broker}, nil
	}
	authorities, err := keyfile.Authorities(o.CA)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	return simulator.MQTT{Broker: o.Broker, TLS: &tls.Config{RootCAs: authorities}}, nil
}
