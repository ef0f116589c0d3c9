package broker

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"motorpool/telematics"
)

// noisy counts the messages that were dropped since the last warning because their unit sent more than its allowance.
type noisy struct {
	mu    sync.Mutex
	units map[telematics.Unit]*limited
}

// limited is what was dropped of one unit.
type limited struct {
	unit                       telematics.Unit
	answers, reports, presence int
}

func (l *limited) all() int { return l.answers + l.reports + l.presence }

// limit counts a message that is dropped because its unit is beyond its allowance.
func (b *Broker) limit(unit telematics.Unit, kind messageKind) {
	b.metrics.overAllowance[kind].Inc()
	b.noisy.mu.Lock()
	defer b.noisy.mu.Unlock()
	l := b.noisy.units[unit]
	if l == nil {
		if len(b.noisy.units) == maxNoisy {
			return
		}
		l = &limited{unit: unit}
		b.noisy.units[unit] = l
	}
	switch kind {
	case answerKind:
		l.answers++
	case reportKind:
		l.reports++
	case presenceKind:
		l.presence++
	}
}

// take returns the units of which messages were dropped, the noisiest first, and forgets them.
func (n *noisy) take() []*limited {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]*limited, 0, len(n.units))
	for _, l := range n.units {
		all = append(all, l)
	}
	clear(n.units)
	slices.SortFunc(all, func(a, b *limited) int { return cmp.Or(b.all()-a.all(), cmp.Compare(a.unit, b.unit)) })
	return all
}

// watchNoisy names noisy units in the log, until the context ends.
func (b *Broker) watchNoisy(ctx context.Context) error {
	return each(ctx, warnEvery, b.warnNoisy)
}

func (b *Broker) warnNoisy() {
	all := b.noisy.take()
	for i, l := range all {
		if i == warnUnits {
			b.Logger.Warn("more units over their allowance", "units", len(all)-warnUnits)
			return
		}
		b.Logger.Warn("unit over its allowance, messages dropped", "unit", l.unit,
			"answers", l.answers, "reports", l.reports, "presence", l.presence, "within", warnEvery)
	}
}
