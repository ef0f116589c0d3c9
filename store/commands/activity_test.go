package commands

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var morning = time.Date(2026, 1, 2, 10, 0, 0, 123456000, time.UTC)

func TestActivity_IsAppendOnly(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	require.NoError(t, p.Add(t.Context(),
		telematics.Activity{At: morning, Actor: telematics.Actor{Role: telematics.Admin}, Action: "x"}))
	for _, statement := range []string{
		`update activity set outcome = 'executed'`, `delete from activity`, `truncate activity`,
		`update activity set code = '' where false`, `truncate activity cascade`,
	} {
		_, err := p.owner().Pool.ExecContext(t.Context(), statement)
		if err == nil || !strings.Contains(err.Error(), "activity is append-only") {
			t.Errorf("%s: %v, want it refused as append-only", statement, err)
		}
	}
	if lines, err := p.Activities(t.Context(), telematics.ActivityQuery{}); err != nil || len(lines) != 1 {
		t.Errorf("%v, %v; want the one entry", lines, err)
	}
}

func TestActivity_IsReadBackAsWritten(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	full := telematics.Activity{
		At:     morning.Add(999 * time.Nanosecond), // truncated, not rounded
		Actor:  telematics.Actor{Subject: "admin-7", Role: telematics.Admin, Agency: 2},
		Agency: 3, Vehicle: 4711, // does not exist: a refused command has an entry, too
		Action:    telematics.CommandActivity(telematics.AttentionSignal),
		Attention: &telematics.Attention{Signal: telematics.Both, Duration: 1234 * time.Millisecond},
		Outcome:   telematics.NotExecuted, Code: telematics.VehicleNotFound,
		Command: uuid.New(), RequestID: uuid.New(), Latency: 1500 * time.Microsecond, Late: true,
	}
	read := telematics.Activity{
		At: morning, Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin},
		Action: telematics.CommandsRead, Outcome: telematics.Executed,
		Details: map[string]any{"bulk": "x", "vehicles": 3.0},
	}
	listed := telematics.Activity{
		At: morning, Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin},
		Action: telematics.VehiclesRead, Outcome: telematics.Executed,
		Details: map[string]any{"filter": map[string]any{"q": "a b"}, "vehicles": 50.0},
	}
	bare := telematics.Activity{At: morning, Actor: telematics.Actor{Role: telematics.System}, Action: telematics.StatusRead}
	for _, line := range []telematics.Activity{full, bare, read, listed} {
		require.NoError(t, p.Add(t.Context(), line))
	}
	lines, err := p.Activities(t.Context(), telematics.ActivityQuery{})
	if err != nil || len(lines) != 4 {
		t.Fatalf("%v, %v; want 4 entries", lines, err)
	}
	full.At = morning
	full.ID, bare.ID, read.ID, listed.ID = 1, 2, 3, 4
	assert.DeepEqual(t, lines, []telematics.Activity{listed, read, bare, full}, "entries")
}

func TestActivities_AreFilteredAndPaged(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for i := range int64(12) {
		line := telematics.Activity{
			At:     morning.Add(time.Duration(i) * time.Second),
			Actor:  telematics.Actor{Subject: []string{"a", "b"}[i%2], Role: telematics.Admin},
			Agency: telematics.AgencyID(i % 3), Vehicle: telematics.VehicleID(i % 4),
			Action: []string{telematics.StatusRead, "command.lock"}[i/6],
		}
		if i >= 6 {
			line.Outcome = telematics.Executed
		}
		require.NoError(t, p.Add(t.Context(), line))
	}
	for name, c := range map[string]struct {
		query telematics.ActivityQuery
		want  []int64 // IDs, which are numbered from 1
	}{
		"everything": {telematics.ActivityQuery{}, []int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
		"agency":     {telematics.ActivityQuery{Agency: 2}, []int64{12, 9, 6, 3}},
		"vehicle":    {telematics.ActivityQuery{Vehicle: 1}, []int64{10, 6, 2}},
		"actor":      {telematics.ActivityQuery{Actor: "b"}, []int64{12, 10, 8, 6, 4, 2}},
		"action":     {telematics.ActivityQuery{Action: "command.lock"}, []int64{12, 11, 10, 9, 8, 7}},
		"outcome":    {telematics.ActivityQuery{Outcome: telematics.Executed}, []int64{12, 11, 10, 9, 8, 7}},
		"from":       {telematics.ActivityQuery{From: morning.Add(9 * time.Second)}, []int64{12, 11, 10}},
		"to":         {telematics.ActivityQuery{To: morning.Add(2 * time.Second)}, []int64{2, 1}},
		"from and to": {telematics.ActivityQuery{From: morning.Add(3 * time.Second), To: morning.Add(6 * time.Second),
			Page: telematics.Page{Limit: 2}}, []int64{6, 5}},
		"page":         {telematics.ActivityQuery{Page: telematics.Page{Limit: 3, Before: 6}}, []int64{5, 4, 3}},
		"all together": {telematics.ActivityQuery{Agency: 1, Vehicle: 3, Actor: "b", Action: "command.lock"}, []int64{8}},
		"NUL byte":     {telematics.ActivityQuery{Actor: "\x00"}, nil},
		"not UTF-8":    {telematics.ActivityQuery{Action: "\xff"}, nil},
	} {
		lines, err := p.Activities(t.Context(), c.query)
		var ids []int64
		for _, line := range lines {
			ids = append(ids, line.ID)
		}
		if err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, ids, err, c.want)
		}
	}
}
