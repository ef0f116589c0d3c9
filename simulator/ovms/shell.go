package ovms

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
	"motorpool/telematics"
)

// belief is how the code for a vehicle type comes to v.e.locked.
type belief int

const (
	byBus     belief = iota // the vehicle says it
	byCommand               // the module sets it when it has executed the command
	byLimit                 // Twizy: it says that the speed is limited
	none                    // no lock and unlock
)

// believes are the vehicle types of the firmware that have CommandLock, others have none.
var believes = map[string]belief{
	"NL": byBus, "CBOLT": byBus, "FT5E": byBus, "KN": byBus, "KS": byBus, "RZ2": byBus, "TR": byBus, "VA": byBus, "VWEG": byBus,
	"RZ": byCommand, "SE": byCommand, "SQ": byCommand, "DEMO": byCommand, "RT": byLimit, "I5": none, "T3": none,
}

// checksPIN are those that call PinCheck.
var checksPIN = map[string]bool{"KN": true, "KS": true, "RZ2": true, "VA": true, "VWEG": true}

// twizyMaxKmh is the highest limit that a Twizy takes (CfgLock).
const twizyMaxKmh = 80

// hear takes in a message (IncomingMsg).
func (m *Module) hear(ctx context.Context, heard message) {
	last, ok := strings.CutPrefix(heard.topic, m.prefix()+"client/")
	client, what, found := strings.Cut(last, "/")
	if !ok || !found || heard.attempt != m.attempt {
		return
	}
	id, isCommand := strings.CutPrefix(what, "command/")
	switch {
	case what == "active":
		m.watch(client, heard.payload)
	case what == "request/metric":
		m.transmit(func(name, _ string) bool { return matches(heard.payload, name) })
	case what == "request/config":
		m.record(simulator.Harmed, telematics.NoCommand, "", "settings were read")
		m.publish("client/"+client+"/config/"+slashes(heard.payload), 0, false, m.config.PIN)
	case isCommand && !m.faults.Silent:
		if m.faults.Delay > 0 {
			m.after(ctx, m.faults.Delay, func() { m.execute(ctx, client, id, heard.payload) })
			return
		}
		m.execute(ctx, client, id, heard.payload)
	}
}

// matches reports whether a list of names, which may end in *, has a name.
func matches(list, name string) bool {
	for pattern := range strings.SplitSeq(list, ",") {
		if start, ok := strings.CutSuffix(pattern, "*"); pattern == name || ok && strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}

// execute runs a line in the module's shell, as often as it comes, and answers with what the shell
// printed (RunCommand).
func (m *Module) execute(ctx context.Context, client, id, line string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		words = []string{""}
	}
	action := telematics.Action(words[0])
	if line == "server v3 update all" {
		action = telematics.ReportState
	}
	command, err := uuid.Parse(id)
	if err != nil {
		command = telematics.NoCommand
	}
	m.record(simulator.CommandReceived, command, action, "")
	var text string
	switch {
	case action == telematics.ReportState:
		m.sendAll = true
		text = "Server V3 data update for all metrics has been scheduled"
	case action == telematics.Lock && len(words) == 2:
		text = m.lock(ctx, command, true, words[1])
	case action == telematics.Unlock && len(words) == 2:
		text = m.lock(ctx, command, false, words[1])
	case action == telematics.Lock || action == telematics.Unlock:
		text = "Usage: " + words[0] + " <pin>"
	default:
		text = "Unrecognised command"
	}
	m.record(simulator.CommandAnswered, command, action, text)
	if !m.faults.Mute {
		m.publish("client/"+client+"/response/"+id, 1, false, text+"\n")
	}
}

// lock is what vehicle_shell.cpp and the module's code for the vehicle type do.
func (m *Module) lock(ctx context.Context, command telematics.CommandID, locked bool, pin string) string {
	word, action := "lock", telematics.Lock
	if !locked {
		word, action = "unlock", telematics.Unlock
	}
	fails := "Error: vehicle could not be " + word + "ed"
	kind, known := believes[m.config.Type]
	switch {
	case !known || kind == none:
		return "Error: Vehicle " + word + " functionality not available"
	case kind == byLimit:
		if !m.limit(command, locked, pin) {
			return fails
		}
	case checksPIN[m.config.Type] && (m.config.PIN == "" || pin != m.config.PIN):
		return fails
	default:
		m.record(simulator.CommandStarted, command, action, "")
		if kind == byCommand {
			m.locked = locked
			m.transmitModified()
		}
		m.after(ctx, m.scaled(m.config.Effort), func() { m.move(command, action, locked) })
	}
	return "Vehicle " + word + "ed"
}

// move is when the car has heard the frames on its bus, or has not.
func (m *Module) move(command telematics.CommandID, action telematics.Action, locked bool) {
	if m.faults.Stuck {
		m.record(simulator.CommandEnded, command, action, "the car did not move")
		return
	}
	m.body.Locked = locked
	m.record(simulator.CommandEnded, command, action, "")
	m.observe()
	m.publish("event/vehicle/"+string(action)+"ed", 0, false, "")
	m.transmitModified() // on vehicle.locked and vehicle.unlocked (EventListener)
}

// limit limits the speed of a Twizy, also while it drives.
func (m *Module) limit(command telematics.CommandID, locked bool, pin string) bool {
	kmh, err := strconv.Atoi(pin)
	switch {
	case !locked:
		m.limitKmh, m.locked = 0, false
	case err != nil || kmh > twizyMaxKmh:
		return false
	default:
		m.limitKmh, m.locked = kmh, true
		m.body.SpeedKmh = min(m.body.SpeedKmh, float64(kmh))
		m.record(simulator.Harmed, command, telematics.Lock, "speed limited to "+pin+" km/h")
	}
	m.transmitModified()
	return true
}

func (m *Module) record(kind simulator.Kind, command telematics.CommandID, action telematics.Action, detail string) {
	now := time.Now()
	m.config.Recorder.Record(simulator.Event{
		Kind: kind, Unit: m.config.Unit, Command: command, Action: action, Detail: detail, Clock: now, True: now,
	})
}
