package audit

import "motorpool/telematics"

// signedForItsUnit claims that no unit refuses a command of the record because it does not know the key that signed it,
// however keys are rotated: every unit knows a key before it signs, and until its last command is over [CMD-1].
//
// Exempt is what came after its expiry: by then the unit may have forgotten the key, and would refuse the command anyway.
func signedForItsUnit(h *hearing) {
	for id, events := range h.flights {
		r := h.rows[id]
		if r == nil {
			continue // forged, and rightly refused
		}
		expires := (&telematics.Command{Deadline: r.Deadline}).Expires()
		for _, e := range events {
			h.must(e.Reason != telematics.BadSignature || e.Unit != r.Unit || e.True.After(expires), command(id),
				"unit %s refused it as badly signed", e.Unit)
		}
	}
}
