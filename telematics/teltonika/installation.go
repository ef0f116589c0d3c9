package teltonika

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"motorpool/telematics"
)

// Settings of an installation other than actions.
const (
	hornSetting       = "horn"
	lightsSetting     = "lights"
	lockSignalSetting = "lock-signal"
)

// switched are the actions with a setting of the same name, which assigns an output.
var switched = []telematics.Action{
	telematics.Lock, telematics.Unlock, telematics.EnableDriving, telematics.DisableDriving, telematics.OpenTopCase,
}

// combined maps actions to the two others that they join in one command.
var combined = map[telematics.Action][2]telematics.Action{
	telematics.UnlockAndEnableDriving: {telematics.Unlock, telematics.EnableDriving},
	telematics.LockAndDisableDriving:  {telematics.Lock, telematics.DisableDriving},
}

// switching is what a digital output does.
type switching struct {
	output  int  // from 1
	on      bool // high
	seconds int  // until it changes back; zero: it stays
}

// wiring is a parsed installation.
type wiring struct {
	does         map[telematics.Action]switching
	horn, lights int  // outputs; zero: none
	readsLock    bool // a CAN adapter reports the lock state
}

const (
	maxOutput  = 4
	maxSeconds = 60
)

var (
	switchingPattern = regexp.MustCompile(`^output ([1-4]) (?:(on|off)|pulse ([1-9][0-9]?)s)$`)
	outputPattern    = regexp.MustCompile(`^output ([1-4])$`)
)

// parseInstallation parses settings. Its errors name settings, but never values, which may be
// secrets of another protocol.
func parseInstallation(i telematics.Installation) (wiring, error) {
	w := wiring{does: map[telematics.Action]switching{}}
	for _, setting := range slices.Sorted(maps.Keys(i)) {
		if err := w.set(setting, i[setting]); err != nil {
			return wiring{}, err
		}
	}
	return w, w.check()
}

func (w *wiring) set(setting, value string) error {
	switch {
	case slices.Contains(switched, telematics.Action(setting)):
		found := switchingPattern.FindStringSubmatch(value)
		if found == nil || atoi(found[3]) > maxSeconds {
			return fmt.Errorf(
				"%s: want \"output N on\", \"output N off\" or \"output N pulse Ss\", N from 1 to %d, S from 1 to %d",
				setting, maxOutput, maxSeconds,
			)
		}
		w.does[telematics.Action(setting)] = switching{output: atoi(found[1]), on: found[2] != "off", seconds: atoi(found[3])}
	case setting == hornSetting, setting == lightsSetting:
		found := outputPattern.FindStringSubmatch(value)
		if found == nil {
			return fmt.Errorf("%s: want \"output N\", N from 1 to %d", setting, maxOutput)
		}
		if setting == hornSetting {
			w.horn = atoi(found[1])
		} else {
			w.lights = atoi(found[1])
		}
	case setting == lockSignalSetting:
		if value != "can" {
			return fmt.Errorf("%s: want \"can\", where a CAN adapter reports element %s (SSF Car Is Closed)", setting, lockElement)
		}
		w.readsLock = true
	default:
		return fmt.Errorf("setting %q: want one of %s, %s, %s, %v", setting, hornSetting, lightsSetting, lockSignalSetting, switched)
	}
	return nil
}

// atoi converts digits matched by a pattern; an empty text is zero.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func (w *wiring) check() error {
	for _, pair := range [][2]telematics.Action{
		{telematics.Lock, telematics.Unlock}, {telematics.EnableDriving, telematics.DisableDriving},
	} {
		one, hasOne := w.does[pair[0]]
		other, hasOther := w.does[pair[1]]
		if hasOne && hasOther && one == other {
			return fmt.Errorf("%s and %s are the same: what an output that toggles does depends on the state before", pair[0], pair[1])
		}
	}
	if (w.horn == 0) != (w.lights == 0) {
		return fmt.Errorf("%s and %s: set both, or none; they may name the same output", hornSetting, lightsSetting)
	}
	_, locks := w.does[telematics.Lock]
	_, unlocks := w.does[telematics.Unlock]
	if w.readsLock && !locks && !unlocks {
		return fmt.Errorf("%s: neither lock nor unlock is set, so it confirms nothing", lockSignalSetting)
	}
	return nil
}

// actions lists the actions for which the installation has outputs.
func (w *wiring) actions() []telematics.Action {
	var can []telematics.Action
	for _, a := range telematics.ControlActions {
		if a == telematics.AttentionSignal && w.horn > 0 || len(w.switchings(a)) > 0 {
			can = append(can, a)
		}
	}
	return can
}

// switchings returns the output changes for an action; none: it is not supported.
func (w *wiring) switchings(a telematics.Action) []switching {
	if s, ok := w.does[a]; ok {
		return []switching{s}
	}
	parts := combined[a]
	one, hasOne := w.does[parts[0]]
	other, hasOther := w.does[parts[1]]
	if !hasOne || !hasOther || one.output == other.output && one != other {
		return nil
	}
	return []switching{one, other}
}

// command returns the command line for the unit.
func (w *wiring) command(c *telematics.Command) (string, error) {
	if s := w.ordered(c); len(s) > 0 {
		return setdigout(s), nil
	}
	return "", fmt.Errorf("the installation has no output for %s", c.Action)
}

// ordered returns the output changes for a command; none: it cannot be encoded.
func (w *wiring) ordered(c *telematics.Command) []switching {
	if c.Action != telematics.AttentionSignal {
		return w.switchings(c.Action)
	}
	if w.horn == 0 || c.Attention == nil {
		return nil
	}
	// The unit counts whole seconds.
	seconds := int((c.Attention.Duration + time.Second - 1) / time.Second)
	horn, lights := switching{w.horn, true, seconds}, switching{w.lights, true, seconds}
	switch c.Attention.Signal {
	case telematics.Horn:
		return []switching{horn}
	case telematics.Lights:
		return []switching{lights}
	}
	return []switching{horn, lights}
}

// setdigout returns the command that switches outputs and leaves the others unchanged: a state for
// each output, then, if any must change back, the seconds for each.
func setdigout(switchings []switching) string {
	last, timed := 0, false
	for _, s := range switchings {
		last, timed = max(last, s.output), timed || s.seconds > 0
	}
	states, times := make([]string, last), make([]string, last)
	for i := range last {
		states[i], times[i] = "?", "?"
	}
	for _, s := range switchings {
		states[s.output-1] = "0"
		if s.on {
			states[s.output-1] = "1"
		}
		if s.seconds > 0 {
			times[s.output-1] = strconv.Itoa(s.seconds)
		}
	}
	line := "setdigout " + strings.Join(states, "")
	if timed {
		line += " " + strings.Join(times, " ")
	}
	return line
}
