package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataRacesOfEveryInstanceAreCounted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"instance-0.log": "serving\n==================\nWARNING: DATA RACE\nRead at\n\nWARNING: DATA RACE\nWrite at\n",
		"instance-1.log": "WARNING: DATA RACE\n",
		"instance-2.log": "serving\n",
		"postgres.log":   "WARNING: DATA RACE\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := racesIn(dir); n != 3 || err != nil {
		t.Errorf("%d races, %v", n, err)
	}
}

func TestADataRaceIsTold(t *testing.T) {
	s := goodRound()
	s.Races = 2
	if text := s.text(); !strings.Contains(text, "data races: 2, in the logs") || !strings.HasSuffix(text, "\nviolations: 0\n") {
		t.Error(text)
	}
}
