package broker

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/telematics"
)

// doneSize is how many commands are remembered whose result is written down. A report
// names up to eight [TEL-3], mostly the same as the one before.
const doneSize = 1 << 16

// word is what one unit says of one command: no unit's word touches another's.
type word struct {
	unit    telematics.Unit
	command telematics.CommandID
}

func newDone() *lru.Cache[word, struct{}] {
	cache, err := lru.New[word, struct{}](doneSize)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return cache
}

// recall takes the results that a report repeats: an answer that was lost on its way is
// settled by the next report [TEL-3]. It hands over and returns [LAW-8]; what does not
// fit comes again.
func (b *Broker) recall(unit telematics.Unit, answers []telematics.Answer, at time.Time) {
	for _, a := range answers {
		if a.State.IsOpen() || b.done.Contains(word{unit, a.Command}) {
			continue
		}
		b.Counts.add(answersRecalled)
		select {
		case b.recalls <- stray{unit: unit, answer: a, at: at}:
		default:
			b.Counts.add(answersDropped)
		}
	}
}

// ended notes that the record has decided about a final answer: it took it, or it never
// will. The row of a command is older than any answer to it [LAW-1].
func (b *Broker) ended(unit telematics.Unit, a telematics.Answer) {
	if !a.State.IsOpen() {
		b.done.Add(word{unit, a.Command}, struct{}{})
	}
}
