package audit

import (
	"slices"

	"motorpool/telematics"
)

// atMostOnce claims that no command starts twice, in whichever cars, and that of all the commands made for one
// Idempotency-Key at one vehicle at most one starts: a caller that tries again with its key gets no second execution.
//
// A key may have several commands: one that was not executed frees it. A key of many vehicles is judged for each alone.
func atMostOnce(h *hearing) {
	seen := map[telematics.CommandID]bool{}
	for _, run := range h.executions {
		id := run.start.Command
		h.must(!seen[id], command(id), "%s of unit %s started again", run.start.Action, run.start.Unit)
		seen[id] = true
	}
	for _, intent := range h.intents() {
		var started []telematics.CommandID
		for _, id := range intent.commands {
			if seen[id] {
				started = append(started, id)
			}
		}
		h.must(len(started) <= 1, subject{commands: started, requests: intent.requests},
			"%d commands of the key %q at vehicle %d started", len(started), intent.key, intent.vehicle)
	}
}

// intent is what a caller wanted once, and everything that was done for it.
type intent struct {
	key      string
	vehicle  telematics.VehicleID
	commands []telematics.CommandID
	requests []string
}

func (v *view) intents() []*intent {
	type name struct {
		key     string
		vehicle telematics.VehicleID
	}
	byName := map[name]*intent{}
	var all []*intent
	for i := range v.Calls {
		c := &v.Calls[i]
		if c.Key == "" {
			continue
		}
		it := byName[name{c.Key, c.Vehicle}]
		if it == nil {
			it = &intent{key: c.Key, vehicle: c.Vehicle}
			byName[name{c.Key, c.Vehicle}], all = it, append(all, it)
		}
		it.requests = append(it.requests, c.RequestID)
		it.add(c.own())
		for _, r := range v.made[c.RequestID] {
			if r.Vehicle == c.Vehicle {
				it.add(r.ID)
			}
		}
	}
	return all
}

func (i *intent) add(id telematics.CommandID) {
	if id != telematics.NoCommand && !slices.Contains(i.commands, id) {
		i.commands = append(i.commands, id)
	}
}
