package teltonika

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// order is a command line that the unit has received.
type order struct {
	line string
	seq  int64
}

// receive handles a message on the command topic. The unit keeps no record of what it has executed,
// and knows no expiry.
func (u *Unit) receive(ctx context.Context, payload []byte) {
	var m struct{ CMD string }
	if err := json.Unmarshal(payload, &m); err != nil || m.CMD == "" || u.Faults.Silent {
		return
	}
	if u.Rand.Float64() < u.Faults.Drop {
		u.dropped++
		return
	}
	u.counted++
	o := order{m.CMD, u.counted}
	u.note(simulator.CommandReceived, "", o)
	u.Execute(ctx, func() { u.execute(ctx, o) })
}

func (u *Unit) note(kind simulator.Kind, action telematics.Action, o order) {
	now := time.Now()
	u.config.Recorder.Record(simulator.Event{
		Kind: kind, Unit: u.config.Unit, Action: action, Seq: o.seq, Detail: o.line, Clock: now.UTC(), True: now,
	})
}

func (u *Unit) execute(ctx context.Context, o order) {
	words := strings.Fields(o.line)
	switch words[0] { // commands are case sensitive
	case "setdigout":
		u.answer(ctx, o, u.setdigout(ctx, o, words[1:]))
	case "getrecord":
		u.record(0) // no answer
	case "getver":
		u.answer(ctx, o, fmt.Sprintf("Ver:03.28.07_00 GPS:AXN_5.10_3333 Hw:FMC150 Mod:4 IMEI:%s Init:1", u.config.Unit))
	default:
		u.answer(ctx, o, "WARNING: Not Recognized answer") //nolint:misspell // the unit's spelling
	}
}

// answer publishes the result of a command, without naming the command.
func (u *Unit) answer(ctx context.Context, o order, text string) {
	payload, err := json.Marshal(map[string]string{"RSP": text})
	if err != nil {
		u.config.Logger.Error("answer not encoded", "unit", u.config.Unit, "err", err)
		return
	}
	u.After(ctx, u.Faults.AnswerDelay(u.Rand), func() {
		u.note(simulator.CommandAnswered, "", order{text, o.seq})
		u.Answer(func() { u.publish(payload) }) // one without a connection is lost
	})
}

// setdigout reads "setdigout ?10 ? 5 ?": states, then seconds.
func (u *Unit) setdigout(ctx context.Context, o order, words []string) string {
	if len(words) == 0 || len(words[0]) > outputs || strings.Trim(words[0], "01?") != "" {
		return "ERROR: wrong parameters"
	}
	if u.Faults.Disabled {
		return "DOUT is disabled from CFG"
	}
	var said []string
	for i, s := range words[0] {
		if s == '?' {
			said = append(said, fmt.Sprintf("DOUT%d:IGNORED", i+1))
			continue
		}
		seconds := 0
		if i+1 < len(words) && words[i+1] != "?" {
			n, err := strconv.Atoi(words[i+1])
			if err != nil || n < 1 {
				return "ERROR: wrong parameters"
			}
			seconds = n
		}
		said = append(said, u.hold(ctx, i, s == '1', seconds, o))
	}
	return strings.Join(said, " ")
}

// hold switches an output, for some seconds, or permanently if they are 0. One that is permanently
// so already stays as it is.
func (u *Unit) hold(ctx context.Context, output int, high bool, seconds int, o order) string {
	if already := u.high[output] == high && !u.pulses[output] && seconds == 0; already && !u.config.SwitchesAgain {
		return fmt.Sprintf("DOUT%d:Already set to %d", output+1, bit(high))
	}
	u.version[output]++
	version := u.version[output]
	u.pulses[output] = seconds > 0
	u.drivesOutput(ctx, output+1, high, o)
	word, timeout := "OFF", "INFINITY"
	if high {
		word = "ON"
	}
	if seconds > 0 {
		timeout = fmt.Sprintf("%ds", seconds)
		u.After(ctx, u.Scaled(time.Duration(seconds)*time.Second), func() {
			if u.version[output] == version {
				u.pulses[output] = false
				u.drivesOutput(ctx, output+1, !high, o)
			}
		})
	}
	return fmt.Sprintf("DOUT%d:%s Timeout:%s", output+1, word, timeout)
}

// drivesOutput applies a change of an output to the vehicle.
func (u *Unit) drivesOutput(ctx context.Context, output int, high bool, o order) {
	if u.high[output-1] == high {
		if w := u.config.Wiring; output != w.Lock && output != w.Unlock {
			return
		}
	}
	u.high[output-1] = high
	w := u.config.Wiring
	switch {
	case output == w.Lock && high:
		u.turnLocks(ctx, true, telematics.Lock, o)
	case output == w.Unlock && high:
		u.turnLocks(ctx, false, telematics.Unlock, o)
	case output == w.Immobilizer && high:
		u.note(simulator.CommandStarted, telematics.DisableDriving, o)
		u.Car.Immobilizer = simulator.Armed
		if !u.Car.Ignition { // a starter relay stops no engine
			u.Car.Immobilizer = simulator.Engaged
		}
		u.note(simulator.CommandEnded, telematics.DisableDriving, o)
	case output == w.Immobilizer:
		u.note(simulator.CommandStarted, telematics.EnableDriving, o)
		u.Car.Immobilizer = simulator.Released
		u.note(simulator.CommandEnded, telematics.EnableDriving, o)
	case output == w.Horn && high:
		u.note(simulator.CommandStarted, telematics.AttentionSignal, o)
		u.note(simulator.CommandEnded, telematics.AttentionSignal, o)
	}
}

func (u *Unit) turnLocks(ctx context.Context, locked bool, action telematics.Action, o order) {
	u.note(simulator.CommandStarted, action, o)
	if u.Faults.Stuck {
		return
	}
	u.After(ctx, u.Scaled(u.config.Effort), func() {
		u.Car.Locked = locked
		u.note(simulator.CommandEnded, action, o)
		u.observe()
	})
}
