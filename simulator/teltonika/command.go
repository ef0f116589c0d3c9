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

// hear takes in a message on the command topic. The unit keeps no record of what it has executed,
// and knows no expiry.
func (u *Unit) hear(ctx context.Context, payload []byte) {
	var m struct{ CMD string }
	if err := json.Unmarshal(payload, &m); err != nil || m.CMD == "" || u.faults.Silent {
		return
	}
	u.note(simulator.CommandReceived, "", m.CMD)
	u.after(ctx, u.faults.Delay, func() { u.execute(ctx, m.CMD) })
}

func (u *Unit) note(kind simulator.Kind, action telematics.Action, line string) {
	now := time.Now()
	u.config.Recorder.Record(simulator.Event{Kind: kind, Unit: u.config.Unit, Action: action, Detail: line, Clock: now.UTC(), True: now})
}

func (u *Unit) execute(ctx context.Context, line string) {
	words := strings.Fields(line)
	switch words[0] { // commands are case sensitive
	case "setdigout":
		u.answer(ctx, u.setdigout(ctx, line, words[1:]))
	case "getrecord":
		u.record(0) // no answer
	case "getver":
		u.answer(ctx, fmt.Sprintf("Ver:03.28.07_00 GPS:AXN_5.10_3333 Hw:FMC150 Mod:4 IMEI:%s Init:1", u.config.Unit))
	default:
		u.answer(ctx, "WARNING: Not Recognized answer") //nolint:misspell // the unit's spelling
	}
}

// answer says what became of the latest command, and not which one that was.
func (u *Unit) answer(ctx context.Context, text string) {
	payload, err := json.Marshal(map[string]string{"RSP": text})
	if err != nil {
		u.config.Logger.Error("answer not encoded", "unit", u.config.Unit, "err", err)
		return
	}
	u.note(simulator.CommandAnswered, "", text)
	if u.faults.Mute {
		return
	}
	u.after(ctx, u.faults.Late, func() { u.publish(payload) }) // one without a connection is lost
}

// setdigout reads "setdigout ?10 ? 5 ?": states, then seconds.
func (u *Unit) setdigout(ctx context.Context, line string, words []string) string {
	if len(words) == 0 || len(words[0]) > outputs || strings.Trim(words[0], "01?") != "" {
		return "ERROR: wrong parameters"
	}
	if u.faults.Disabled {
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
		said = append(said, u.hold(ctx, i, s == '1', seconds, line))
	}
	return strings.Join(said, " ")
}

// hold switches an output, for the seconds where they are not 0.
func (u *Unit) hold(ctx context.Context, output int, high bool, seconds int, line string) string {
	u.version[output]++
	version := u.version[output]
	u.drivesOutput(ctx, output+1, high, line)
	word, timeout := "OFF", "INFINITY"
	if high {
		word = "ON"
	}
	if seconds > 0 {
		timeout = fmt.Sprintf("%ds", seconds)
		u.after(ctx, time.Duration(seconds)*time.Second, func() {
			if u.version[output] == version {
				u.drivesOutput(ctx, output+1, !high, line)
			}
		})
	}
	return fmt.Sprintf("DOUT%d:%s Timeout:%s", output+1, word, timeout)
}

// drivesOutput is what the vehicle does about an output.
func (u *Unit) drivesOutput(ctx context.Context, output int, high bool, line string) {
	if u.high[output-1] == high {
		if w := u.config.Wiring; output != w.Lock && output != w.Unlock {
			return
		}
	}
	u.high[output-1] = high
	w := u.config.Wiring
	switch {
	case output == w.Lock && high:
		u.turnLocks(ctx, true, telematics.Lock, line)
	case output == w.Unlock && high:
		u.turnLocks(ctx, false, telematics.Unlock, line)
	case output == w.Immobilizer && high:
		u.note(simulator.CommandStarted, telematics.DisableDriving, line)
		u.body.Immobilizer = simulator.Armed
		if !u.body.Ignition { // a starter relay stops no engine
			u.body.Immobilizer = simulator.Engaged
		}
		u.note(simulator.CommandEnded, telematics.DisableDriving, line)
	case output == w.Immobilizer:
		u.note(simulator.CommandStarted, telematics.EnableDriving, line)
		u.body.Immobilizer = simulator.Released
		u.note(simulator.CommandEnded, telematics.EnableDriving, line)
	case output == w.Horn && high:
		u.note(simulator.CommandStarted, telematics.AttentionSignal, line)
		u.note(simulator.CommandEnded, telematics.AttentionSignal, line)
	}
}

func (u *Unit) turnLocks(ctx context.Context, locked bool, action telematics.Action, line string) {
	u.note(simulator.CommandStarted, action, line)
	if u.faults.Stuck {
		return
	}
	u.after(ctx, u.config.Effort, func() {
		u.body.Locked = locked
		u.note(simulator.CommandEnded, action, line)
		u.observe()
	})
}
