package rental

import "expvar"

// Counts tells how often what happened in this instance since it started.
type Counts struct {
	m     expvar.Map
	names []string
}

// Names of counts. Each is present from the start, so that zero can be read. In addition there is one for each kind of
// charge and each state that one of its kind may come to: charge_start_paid, charge_deposit_released …
const (
	chargesTaken     = "charges_taken"     // charges that were due, and were taken
	chargesLost      = "charges_lost"      // of those: another worker had them, or they had changed
	chargesNotKept   = "charges_not_kept"  // of those: what was learned could not be written down; they are looked at again
	chargesAgain     = "charges_again"     // tries that brought no news
	processorUnsure  = "processor_unsure"  // calls of the processor that may have happened
	processorBusy    = "processor_busy"    // calls that it did not take
	processorRefused = "processor_refused" // calls that made no sense to it, or came with the wrong credentials
	noticesTaken     = "notices_taken"     // notices that were due, and were taken
	noticesWoke      = "notices_woke"      // of those: had a charge looked at
	noticesFinal     = "notices_final"     // of those: about a charge that nothing changes any more
	noticesStrange   = "notices_strange"   // of those: about nothing that we keep
	noticesCards     = "notices_cards"     // of those: about a card
	noticesFailed    = "notices_failed"    // of those: could not be handled, and come again
	chargeCount      = "charge_"
)

func newCounts() *Counts {
	c := &Counts{names: []string{
		chargesTaken, chargesLost, chargesNotKept, chargesAgain, processorUnsure, processorBusy, processorRefused,
		noticesTaken, noticesWoke, noticesFinal, noticesStrange, noticesCards, noticesFailed,
	}}
	for _, kind := range []ChargeKind{StartCharge, DepositCharge, ExtensionCharge, FeeCharge, RefundCharge} {
		for _, state := range outcomes(kind) {
			c.names = append(c.names, countOf(kind, state))
		}
	}
	for _, name := range c.names {
		c.m.Add(name, 0)
	}
	return c
}

// outcomes lists what may become of a charge of a kind.
func outcomes(k ChargeKind) []ChargeState {
	switch k {
	case RefundCharge:
		return []ChargeState{Unknown, Failed, Paid}
	case DepositCharge:
		return []ChargeState{Unknown, RequiresAction, Declined, Failed, Authorized, Captured, Released}
	default:
		return []ChargeState{Unknown, RequiresAction, Declined, Failed, Paid}
	}
}

func countOf(k ChargeKind, s ChargeState) string { return chargeCount + string(k) + "_" + string(s) }

func (c *Counts) add(name string) { c.m.Add(name, 1) }

// Get returns one count.
func (c *Counts) Get(name string) int64 {
	if v, ok := c.m.Get(name).(*expvar.Int); ok {
		return v.Value()
	}
	return 0
}

// All returns every count by name.
func (c *Counts) All() map[string]int64 {
	all := make(map[string]int64, len(c.names))
	for _, name := range c.names {
		all[name] = c.Get(name)
	}
	return all
}
