package telematics

import "testing"

func TestAnswer_RejectionThatTheUnitForgetsSettlesAsUnknown(t *testing.T) {
	for _, reason := range []string{
		BadSignature, WrongAudience, ClockUnset, ClockBehind, TTLTooLong, TooLate, OutOfOrder, Unsupported, StateConflict, "", "another",
	} {
		forgotten := reason == BadSignature || reason == WrongAudience // [CMD-4]
		a := Answer{State: Rejected, Reason: reason}
		want := Rejected
		if forgotten {
			want = Unknown
		}
		if a.Forgotten() != forgotten || a.Settles() != want {
			t.Errorf("rejected as %q: forgotten %t, settles as %s; want %t, %s", reason, a.Forgotten(), a.Settles(), forgotten, want)
		}
		for _, state := range []State{Received, Succeeded, Failed} {
			if a := (Answer{State: state, Reason: reason}); a.Forgotten() || a.Settles() != state {
				t.Errorf("%s, %q: forgotten %t, settles as %s; want not forgotten, unchanged", state, reason, a.Forgotten(), a.Settles())
			}
		}
	}
}
