package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// racesIn counts what the race detector told in the logs of the instances.
func racesIn(dir string) (int, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "instance-*.log"))
	if err != nil {
		return 0, fmt.Errorf("look for data races: %w", err)
	}
	races := 0
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return 0, fmt.Errorf("look for data races: %w", err)
		}
		races += bytes.Count(text, []byte("WARNING: DATA RACE"))
	}
	return races, nil
}
