package ovms

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
	"motorpool/telematics"
)

// belief is how the code for a vehicle type sets v.e.locked.
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

// checksPIN are the vehicle types that call PinCheck.
var checksPIN = map[string]bool{"KN": true, "KS": true, "RZ2": true, "VA": true, "VWEG": true}

// twizyMaxKmh is the highest limit that a Twizy takes (CfgLock).
const twizyMaxKmh = 80

// receive handles a message (IncomingMsg).
func (m *Module) receive(ctx context.Context, heard message) {
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
		m.record(simulator.Harmed, line{}, "settings were read")
		m.publish("client/"+client+"/config/"+slashes(heard.payload), 0, false, m.config.PIN)
	case isCommand && m.Rand.Float64() < m.Faults.Drop:
		m.dropped++
	case isCommand && heard.payload == "metrics list -s v.e.locked":
		m.showLock("client/" + client + "/response/" + id)
	case isCommand && !m.Faults.Silent:
		m.heard++
		l := m.parse(client, id, heard.payload)
		m.record(simulator.CommandReceived, l, "")
		m.Execute(ctx, func() { m.execute(ctx, l) })
	}
}

// showLock prints v.e.locked with its age: the car reports it all the time, unless the module hears
// nothing (metrics_list).
func (m *Module) showLock(topic string) {
	age := "[00-]"
	if m.Deaf() || believes[m.config.Type] != byBus {
		age = "[99S]"
	}
	if !m.Faults.Silent && !m.Faults.Mute && m.Rand.Float64() >= m.Faults.DropAnswer {
		m.publish(topic, 1, false, fmt.Sprintf("%s %-40.40s %s\n", age, "v.e.locked", yesOrNo(m.locked)))
	}
}

// line is a command line that the module has received.
type line struct {
	command telematics.CommandID
	action  telematics.Action
	words   []string
	seq     int64
	answer  string // the end of the topic of its answer
}

func (m *Module) parse(client, id, text string) line {
	l := line{words: strings.Fields(text), seq: m.heard, answer: "client/" + client + "/response/" + id}
	if len(l.words) == 0 {
		l.words = []string{""}
	}
	l.action = telematics.Action(l.words[0])
	if text == "server v3 update all" {
		l.action = telematics.ReportState
	}
	if command, err := uuid.Parse(id); err == nil {
		l.command = command
	}
	return l
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
func (m *Module) execute(ctx context.Context, l line) {
	var text string
	switch {
	case l.action == telematics.ReportState:
		m.sendAll = true
		text = "Server V3 data update for all metrics has been scheduled"
	case l.action == telematics.Lock && len(l.words) == 2:
		text = m.lock(ctx, l, true)
	case l.action == telematics.Unlock && len(l.words) == 2:
		text = m.lock(ctx, l, false)
	case l.action == telematics.Lock || l.action == telematics.Unlock:
		text = "Usage: " + l.words[0] + " <pin>"
	default:
		text = "Unrecognised command"
	}
	m.After(ctx, m.Faults.AnswerDelay(m.Rand), func() { m.say(l, text) })
}

// say sends an answer by the radio.
func (m *Module) say(l line, text string) {
	m.record(simulator.CommandAnswered, l, text)
	m.Answer(func() { m.publish(l.answer, 1, false, text+"\n") })
}

// lock is what vehicle_shell.cpp and the module's code for the vehicle type do.
func (m *Module) lock(ctx context.Context, l line, locked bool) string {
	word, pin := string(l.action), l.words[1]
	fails := "Error: vehicle could not be " + word + "ed"
	kind, known := believes[m.config.Type]
	switch {
	case !known || kind == none:
		return "Error: Vehicle " + word + " functionality not available"
	case kind == byLimit:
		if !m.limit(l, locked, pin) {
			return fails
		}
	case checksPIN[m.config.Type] && (m.config.PIN == "" || pin != m.config.PIN):
		return fails
	default:
		m.record(simulator.CommandStarted, l, "")
		if kind == byCommand {
			m.locked = locked
			m.react()
		}
		m.After(ctx, m.Scaled(m.config.Effort), func() { m.move(l, locked) })
	}
	return "Vehicle " + word + "ed"
}

// move is when the car has heard the frames on its bus, or has not.
func (m *Module) move(l line, locked bool) {
	if m.Faults.Stuck {
		m.record(simulator.CommandEnded, l, "the car did not move")
		return
	}
	m.Car.Locked = locked
	m.record(simulator.CommandEnded, l, "")
	m.observe()
	m.react()
}

// limit limits the speed of a Twizy, also while it drives.
func (m *Module) limit(l line, locked bool, pin string) bool {
	kmh, err := strconv.Atoi(pin)
	switch {
	case !locked:
		m.locked = false
	case err != nil || kmh > twizyMaxKmh:
		return false
	default:
		m.locked = true
		m.Car.SpeedKmh = min(m.Car.SpeedKmh, float64(kmh))
		m.record(simulator.Harmed, l, "speed limited to "+pin+" km/h")
	}
	m.react()
	return true
}

func (m *Module) record(kind simulator.Kind, l line, detail string) {
	now := time.Now()
	m.config.Recorder.Record(simulator.Event{
		Kind: kind, Unit: m.config.Unit, Command: l.command, Action: l.action, Seq: l.seq, Detail: detail, Clock: now, True: now,
	})
}
