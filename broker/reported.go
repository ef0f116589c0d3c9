package broker

import (
	"time"

	"motorpool/telematics"
)

const (
	// reportPatience is how long an answer waits for its report to be written: one vehicle's
	// trouble must not hold up the answers of the others.
	reportPatience = 250 * time.Millisecond
	// bringPatience is the part of it after which the report is written the slower way.
	bringPatience = reportPatience / 2
)

// reported is a report that came with an answer, on its way to where everybody sees it.
type reported struct {
	*Broker
	sign  telematics.Observation
	there <-chan bool     // every instance sees it; nil: it goes the slower way
	done  <-chan struct{} // it is written, or cannot be; nil: it does not go the slower way, or cannot
}

// report sends a report on its way.
func (b *Broker) report(sign telematics.Observation) *reported {
	r := &reported{Broker: b, sign: sign, there: b.Twins.Bring(sign)}
	if r.there == nil {
		r.slower()
	}
	return r
}

func (r *reported) slower() {
	if r.done = r.prompt.begin(r.sign); r.done == nil {
		r.Counts.add(observationsLost)
	}
}

// await returns when everybody sees the report, or patience is at its end; nil: there is none.
func (r *reported) await() {
	if r == nil {
		return
	}
	patience := time.NewTimer(bringPatience)
	defer patience.Stop()
	if r.there != nil {
		select {
		case there := <-r.there:
			if there {
				return
			}
		case <-patience.C:
		}
		r.slower()
	}
	if r.done == nil {
		return
	}
	patience.Reset(reportPatience)
	select {
	case <-r.done:
	case <-patience.C:
	}
}
