package audit

import (
	"motorpool/simulator"
	"motorpool/telematics"
)

// signedForItsUnit claims that no unit refuses a command of the record because it does not know the key that signed it,
// however keys are rotated: every unit knows a key before it signs, and until its last command is over [CMD-1].
//
// Exempt is what came after its expiry: by then the unit may have forgotten the key, and would refuse the command anyway.
// So is an answer for each copy that the radio had damaged.
func signedForItsUnit(h *hearing) {
	for id, events := range h.flights {
		r := h.rows[id]
		if r == nil {
			continue // forged, and rightly refused
		}
		expires := (&telematics.Command{Deadline: r.Deadline}).Expires()
		damaged := 0
		for _, e := range events {
			if e.Unit != r.Unit {
				continue
			}
			if e.Kind == simulator.CommandDamaged {
				damaged++
			}
			refused := e.Reason == telematics.BadSignature && !e.True.After(expires)
			if refused && damaged > 0 {
				damaged--
				refused = false
			}
			h.must(!refused, command(id), "unit %s refused it as badly signed", e.Unit)
		}
	}
}
