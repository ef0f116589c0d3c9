package main

import (
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

// machine says where and when a run was, so that nobody compares what cannot be compared.
type machine struct {
	At    time.Time `json:"at"`
	Cores int       `json:"cores"`
	CPU   string    `json:"cpu"`
	Go    string    `json:"go"`
	Load  float64   `json:"load"` // of the minute before: what else ran here

	SessionGroups bool `json:"session_groups"` // each session, so each connection of Postgres, is scheduled as a group
}

func thisMachine() machine {
	m := machine{At: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version()}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	if load, err := proc.LoadAvg(); err == nil {
		m.Load = load.Load1
	}
	m.SessionGroups = sessionsAreGroups(proc)
	return m
}
