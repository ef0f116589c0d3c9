package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags_CommandsAndDurationFollowFromEachOther(t *testing.T) {
	for _, test := range []struct {
		given    flags
		commands int
		duration time.Duration
	}{
		{flags{}, 20000, 200 * time.Second},
		{flags{Commands: 50000}, 50000, 500 * time.Second},
		{flags{Commands: 100}, 100, minDuration},
		{flags{Duration: time.Minute}, 0, time.Minute},
		{flags{Commands: 1500, Duration: 40 * time.Second}, 1500, 40 * time.Second},
	} {
		f := test.given
		f.Instances, f.Vehicles, f.Callers = 3, 300, 96
		assert.NoError(t, f.complete(), "%+v", test.given)
		if f.Commands != test.commands || f.Duration != test.duration || f.Seed == 0 {
			t.Errorf("flags %+v: %d commands in %v, seed %d", test.given, f.Commands, f.Duration, f.Seed)
		}
	}
}

func TestFlags_DayIsOf24HoursOrASlice(t *testing.T) {
	f := flags{Day: true, Instances: 3, Callers: 96}
	if err := f.complete(); err != nil || f.Duration != 24*time.Minute || f.Commands != 11520 || f.makeup() != (makeup{50, 25, 25}) {
		t.Errorf("a day: %v, %+v", err, f)
	}
	f = flags{Day: true, Instances: 3, Callers: 96, Duration: 2 * time.Minute}
	if err := f.complete(); err != nil || f.Duration != 2*time.Minute || f.Commands != 960 {
		t.Errorf("a part of a day: %v, %+v", err, f)
	}
	for _, other := range []flags{
		{Fault: RedisCluster}, {Rollout: true}, {Shards: true}, {Maintenance: true}, {Bookings: 7}, {Rentals: 7},
	} {
		other.Day, other.Instances, other.Callers = true, 3, 96
		if other.complete() == nil {
			t.Errorf("the flags were not refused: %+v", other)
		}
	}
}

func TestFlags_InvalidRoundIsRefused(t *testing.T) {
	good := flags{Duration: time.Minute, Instances: 3, Vehicles: 300, Callers: 96}
	for name, spoil := range map[string]func(*flags){
		"one instance": func(f *flags) { f.Instances = 1 },
		"few vehicles": func(f *flags) { f.Vehicles = 5 },
		"too short":    func(f *flags) { f.Duration = time.Second },
		"two programs": func(f *flags) { f.Race, f.Binary = true, "bin/motorpool" },
		"no callers":   func(f *flags) { f.Callers = 0 },
	} {
		f := good
		spoil(&f)
		if f.complete() == nil {
			t.Errorf("%s: the flags were not refused", name)
		}
	}
}

func TestFlags_RoundOfMoneySetsItsDuration(t *testing.T) {
	f := flags{Bookings: 2000, Instances: 3, Vehicles: 300, Callers: 96}
	if err := f.complete(); err != nil || f.Seed == 0 || f.Commands != 0 || f.Duration != 0 {
		t.Errorf("a round of money: %v, %+v", err, f)
	}
	for name, spoil := range map[string]func(*flags){
		"with commands":     func(f *flags) { f.Commands = 20000 },
		"with its schedule": func(f *flags) { f.Print = true },
		"two programs":      func(f *flags) { f.Race, f.Binary = true, "bin/motorpool" },
	} {
		f := flags{Bookings: 2000, Instances: 3, Vehicles: 300, Callers: 96}
		spoil(&f)
		if f.complete() == nil {
			t.Errorf("%s: the flags were not refused", name)
		}
	}
}

func TestFlags_RoundOfOneFaultSetsItsCommandsAndDuration(t *testing.T) {
	fleet := flags{Instances: 3, Vehicles: 300, Callers: 96, Fault: RedisCluster}
	f := fleet
	if err := f.complete(); err != nil || f.Commands != 2000 || f.Duration != singleDuration {
		t.Errorf("a round of one fault: %v, %+v", err, f)
	}
	for name, spoil := range map[string]func(*flags){
		"of an unknown fault":       func(f *flags) { f.Fault = "nothing at all" },
		"with another round":        func(f *flags) { f.Bookings = 100 },
		"with a rolling restart":    func(f *flags) { f.Rollout = true },
		"with its schedule":         func(f *flags) { f.Print = true },
		"too short":                 func(f *flags) { f.Duration = time.Second },
		"with a number of commands": func(f *flags) { f.Fault, f.Commands = commitsLost, 100 },
	} {
		f := fleet
		spoil(&f)
		if f.complete() == nil {
			t.Errorf("%s: the flags were not refused", name)
		}
	}
}

func TestLongestGap_OfGapsThatEndInTheInterval(t *testing.T) {
	begin := time.Now()
	var executed []time.Time
	for _, second := range []int{0, 1, 2, 7, 8, 20} {
		executed = append(executed, begin.Add(time.Duration(second)*time.Second))
	}
	for _, test := range []struct{ from, to, gap int }{{0, 30, 12}, {0, 10, 5}, {0, 3, 1}, {3, 10, 5}, {21, 30, 0}} {
		from, to := begin.Add(time.Duration(test.from)*time.Second), begin.Add(time.Duration(test.to)*time.Second)
		if gap := longestGap(executed, from, to); gap != time.Duration(test.gap)*time.Second {
			t.Errorf("from %d to %d: %v, want %d s", test.from, test.to, gap, test.gap)
		}
	}
}

func TestRacesIn_CountsThoseOfEveryInstance(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"instance-0.log": "serving\n==================\nWARNING: DATA RACE\nRead at\n\nWARNING: DATA RACE\nWrite at\n",
		"instance-1.log": "WARNING: DATA RACE\n",
		"instance-2.log": "serving\npanic: nil map\n",
		"postgres.log":   "WARNING: DATA RACE\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if n, err := racesIn(dir); n != 4 || err != nil {
		t.Errorf("%d races and panics, %v; want 4", n, err)
	}
}

func TestKinds_EveryFaultCanBeInjected(t *testing.T) {
	for _, k := range Kinds {
		if k.strike == nil && k.world == nil {
			t.Errorf("%q cannot be injected", k.Name)
		}
	}
}

func TestAddLeaks_ViolationDoesNotShowTheSecret(t *testing.T) {
	w, err := world.New(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	w.InUse.Add("password of postgres", "hush-database")
	require.NoError(t, os.WriteFile(w.Path("instance-0.log"), []byte("serving\nfailed: postgres://u:hush-database@h/db\n"), 0o600))
	found, err := w.SearchLogs()
	require.NoError(t, err)
	report := verdict.New("a law")
	addLeaks(&report, found)
	var text strings.Builder
	report.Write(&text, "")
	if !strings.Contains(text.String(), "instance-0.log:2 has the password of postgres") ||
		!strings.HasSuffix(text.String(), "violations: 1\n") ||
		strings.Contains(text.String(), "hush") {
		t.Errorf("the summary is %s", &text)
	}
}
