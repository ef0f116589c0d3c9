package audit

import "motorpool/telematics"

// historyAppendOnly claims that lines are only added [LAW-9]: every attempt to change or delete one was refused, each
// line that was read while commands ran is still there and the same, no two lines have one id, and no settlement of a
// command was written twice. (One outcome may come twice where the second is a late answer: expired, then rejected.)
func historyAppendOnly(h *hearing) {
	h.checked++ // the attempts
	for _, attempt := range h.Tampered {
		h.must(false, command(), "not refused: %s", attempt)
	}
	byID := make(map[int64]*Line, len(h.written))
	for i := range h.written {
		l := &h.written[i]
		h.must(byID[l.ID] == nil, about(l), "two lines have the id %d", l.ID)
		byID[l.ID] = l
	}
	for i := range h.Sampled {
		then := &h.Sampled[i]
		now := byID[then.ID]
		h.must(now != nil, about(then), "line %d is gone", then.ID)
		if now != nil {
			h.must(same(*now, *then), about(then), "line %d was changed: %s, once %s", then.ID, now.text(), then.text())
		}
	}
	type settlement struct {
		command telematics.CommandID
		outcome telematics.Outcome
		late    bool
	}
	written := map[settlement]bool{}
	for i := range h.Commands {
		r := &h.Commands[i]
		for _, l := range h.settlements(r) {
			s := settlement{r.ID, l.Outcome, l.Late}
			h.must(!written[s], command(r.ID), "the settlement %q is written twice", l.Outcome)
			written[s] = true
		}
	}
}

func about(l *Line) subject {
	if l.Command != telematics.NoCommand {
		return command(l.Command)
	}
	return request(l.RequestID)
}

func same(a, b Line) bool {
	sameTime := a.At.Equal(b.At)
	a.At = b.At
	return sameTime && a == b
}
