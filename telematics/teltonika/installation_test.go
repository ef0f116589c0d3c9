package teltonika

import (
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestEncode_SwitchesTheOutputsOfTheInstallation(t *testing.T) {
	attention := func(s telematics.Signal, d time.Duration) *telematics.Attention {
		return &telematics.Attention{Signal: s, Duration: d}
	}
	apart := telematics.Installation{"horn": "output 1", "lights": "output 3", "open-top-case": "output 2 pulse 60s"}
	for _, c := range []struct {
		installation telematics.Installation
		action       telematics.Action
		attention    *telematics.Attention
		want         string
	}{
		{van, telematics.Lock, nil, "setdigout 1 1"},
		{van, telematics.Unlock, nil, "setdigout ?1 ? 1"},
		{van, telematics.DisableDriving, nil, "setdigout ??1"},
		{van, telematics.EnableDriving, nil, "setdigout ??0"},
		{van, telematics.UnlockAndEnableDriving, nil, "setdigout ?10 ? 1 ?"},
		{van, telematics.LockAndDisableDriving, nil, "setdigout 1?1 1 ? ?"},
		{van, telematics.AttentionSignal, attention(telematics.Both, time.Second), "setdigout ???1 ? ? ? 1"},
		{apart, telematics.AttentionSignal, attention(telematics.Both, 5*time.Second), "setdigout 1?1 5 ? 5"},
		{apart, telematics.AttentionSignal, attention(telematics.Horn, time.Millisecond), "setdigout 1 1"},
		{apart, telematics.AttentionSignal, attention(telematics.Lights, 1500*time.Millisecond), "setdigout ??1 ? ? 2"},
		{apart, telematics.OpenTopCase, nil, "setdigout ?1 ? 60"},
	} {
		command := telematics.Command{
			Unit: unit, Action: c.action, Attention: c.attention, Installation: c.installation, Requested: received,
			Deadline: received.Add(10 * time.Second),
		}
		out, err := (Dialect{}).Encode(&command, nil)
		if err != nil || string(out.Payload) != `{"CMD":"`+c.want+`"}` || out.Topic != "teltonika/352093081452251/commands" ||
			(Dialect{}).Promises(c.installation, c.action).Deduplicated ||
			out.QoS != 0 {
			t.Errorf("%s of %v: %q to %q, %v; want %q", c.action, c.installation, out.Payload, out.Topic, err, c.want)
		}
	}
	strange := telematics.Command{
		Unit: unit, Action: telematics.Lock, Installation: apart, Requested: received,
		Deadline: received.Add(time.Second),
	}
	if out, err := (Dialect{}).Encode(&strange, nil); err == nil {
		t.Errorf("a lock without an output was encoded as %q", out.Payload)
	}
}

func TestEncode_CommandIsPublishedWithinSeconds(t *testing.T) {
	for budget, want := range map[time.Duration]time.Duration{time.Second: time.Second, 30 * time.Second: leaveWithin} {
		command := telematics.Command{
			Unit: unit, Action: telematics.Lock, Installation: van, Requested: received, Deadline: received.Add(budget),
		}
		if out, err := (Dialect{}).Encode(&command, nil); err != nil || out.LeaveBefore.Sub(received) != want {
			t.Errorf("with a budget of %v: to be published within %v, %v; want %v", budget, out.LeaveBefore.Sub(received), err, want)
		}
	}
}

func TestActions_AreThoseOfTheInstallation(t *testing.T) {
	every := slices.DeleteFunc(
		slices.Clone(telematics.ControlActions), func(a telematics.Action) bool { return a == telematics.OpenTopCase },
	)
	for _, c := range []struct {
		installation telematics.Installation
		want         []telematics.Action
	}{
		{nil, nil},
		{van, every},
		{telematics.Installation{"lock": "output 1 pulse 1s"}, []telematics.Action{telematics.Lock}},
		// The two parts of a combined action must not use one output.
		{telematics.Installation{"lock": "output 1 pulse 1s", "disable-driving": "output 1 on"}, []telematics.Action{
			telematics.Lock, telematics.DisableDriving,
		}},
	} {
		if got, err := (Dialect{}).Actions(c.installation); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: actions %v, %v; want %v", c.installation, got, err, c.want)
		}
	}
}

func TestActions_InvalidInstallationIsRefusedWithAHint(t *testing.T) {
	for _, c := range []struct {
		installation telematics.Installation
		message      string
	}{
		{telematics.Installation{"pin": "4711"}, `setting "pin": want one of`},
		{telematics.Installation{"lock": "setdigout 1; cpureset"}, `lock: want "output N on"`},
		{telematics.Installation{"lock": "output 5 on"}, "N from 1 to 4"},
		{telematics.Installation{"lock": "output 1 pulse 0s"}, "lock: want"},
		{telematics.Installation{"lock": "output 1 pulse 61s"}, "S from 1 to 60"},
		{telematics.Installation{"lock": "output 1 on\nx"}, "lock: want"},
		{telematics.Installation{"lock": "output 1 pulse 1s", "unlock": "output 1 pulse 1s"}, "lock and unlock are the same"},
		{telematics.Installation{"enable-driving": "output 1 on", "disable-driving": "output 1 on"}, "are the same"},
		{telematics.Installation{"horn": "output 1"}, "set both, or none"},
		{telematics.Installation{"horn": "output 1 on", "lights": "output 2"}, `horn: want "output N"`},
		{telematics.Installation{"lock-signal": "can"}, "neither lock nor unlock"},
		{telematics.Installation{"lock": "output 1 on", "lock-signal": "obd"}, `lock-signal: want "can"`},
		{telematics.Installation{"report-state": "output 1 on"}, `setting "report-state"`},
	} {
		_, err := (Dialect{}).Actions(c.installation)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%v: error %v, want %q", c.installation, err, c.message)
		}
		for _, value := range c.installation {
			if err != nil && strings.Contains(err.Error(), value) && value != "can" {
				t.Errorf("the error %v has a value of the installation", err)
			}
		}
		command := telematics.Command{
			Unit: unit, Action: telematics.Lock, Installation: c.installation, Requested: received,
			Deadline: received.Add(time.Second),
		}
		if out, err := (Dialect{}).Encode(&command, nil); err == nil {
			t.Errorf("%v: a command was encoded as %q", c.installation, out.Payload)
		}
	}
}

// A record of the second in which a command is published may be older than the command.
func TestEncode_ConfirmedCommandIsPublishedAtTheEndOfASecond(t *testing.T) {
	for _, c := range []struct {
		action telematics.Action
		want   bool
	}{
		{telematics.Lock, true}, {telematics.Unlock, true}, {telematics.DisableDriving, false}, {telematics.LockAndDisableDriving, false},
	} {
		command := telematics.Command{
			Unit: unit, Action: c.action, Installation: van, Requested: received,
			Deadline: received.Add(10 * time.Second),
		}
		if out, err := (Dialect{}).Encode(&command, nil); err != nil || out.EndOfSecond != c.want {
			t.Errorf("%+v: at the end of a second %t, %v", c, out.EndOfSecond, err)
		}
	}
}
