package rental

// authentication is the processor's word for an owner who must confirm.
const authentication = "authentication_required"

// declined is what follows from a card's refusal: another try some time later, none with this card, or the owner's turn.
func (h *chargeWorker) declined(d Decline, attempt string) Result {
	r := h.as(Failed)
	r.Seen, r.DeclineCode = attempt, d.Code
	switch {
	case d.Action:
		r.State, r.DeclineCode = RequiresAction, authentication
	case d.Hard:
		r.Declined, r.Hard = true, true
	default:
		r.Declined = true
		if wait, ok := retryAfter(h.job.Declines + 1); ok {
			r.State, r.NextAttempt = Declined, h.Now().Add(wait)
		}
	}
	return h.withActivity(r)
}

// noCard is a charge that waits for the client to add a card.
func (h *chargeWorker) noCard() Result {
	r := h.as(Declined)
	if h.job.State == Failed {
		r.State = Failed
	}
	if r.DeclineCode == noCard && h.job.State == r.State {
		return r
	}
	r.DeclineCode = noCard
	return h.withActivity(r)
}
