package activity

import (
	"context"
	"math"

	"github.com/jmoiron/sqlx"
)

// chain is the stored sequence of seals.
type chain struct {
	db     *sqlx.DB
	head   Seal // zero: there is no seal
	prunes []Seal
}

func openChain(ctx context.Context, db *sqlx.DB) (c chain, err error) {
	c.db = db
	if c.head, err = head(ctx, db); err != nil {
		return c, err
	}
	c.prunes, err = readSeals(ctx, db, `where pruned_before is not null and number <= $1 order by number`, c.head.Number)
	return c, err
}

// pruned reports whether the entries of a seal were pruned.
func (c chain) pruned(s Seal) bool {
	for _, p := range c.prunes {
		if p.Number > s.Number && s.Month < *p.PrunedBefore {
			return true
		}
	}
	return false
}

// prunedBefore returns the first month that was never pruned; empty: nothing was pruned.
func (c chain) prunedBefore() string {
	last := ""
	for _, p := range c.prunes {
		last = max(last, *p.PrunedBefore)
	}
	return last
}

// sealed is a seal with the entries of its range.
type sealed struct {
	Seal
	entries []sealedEntry
	// Entries between the range of the previous seal and that of this one.
	stray []sealedEntry
}

// maxHeld limits the entries of one seal in memory. Where there are more than sealEntries, some
// were inserted, which the first maxHeld are enough to show.
const maxHeld = 10 * sealEntries

func (s *sealed) add(e sealedEntry) {
	to := &s.entries
	if e.id < s.FirstID {
		to = &s.stray
	}
	if len(*to) < maxHeld {
		*to = append(*to, e)
	}
}

// walk calls visit for each seal in a range of numbers, with the stored seal before it. Sealed
// entries do not change, so it needs no snapshot, which would keep Postgres from vacuuming.
func (c chain) walk(ctx context.Context, first, last int64, visit func(previous Seal, s sealed) error) error {
	var previous Seal
	from := int64(math.MinInt64) // ids
	if before, err := readSeals(ctx, c.db, `where number < $1 order by number desc limit 1`, first); err != nil {
		return err
	} else if len(before) > 0 {
		previous, from = before[0], before[0].LastID
	}
	for {
		seals, err := readSeals(ctx, c.db, `where number >= $1 and number <= $2 order by number limit $3`, max(first, previous.Number+1), last, walkSeals)
		if err != nil || len(seals) == 0 {
			return err
		}
		to := seals[len(seals)-1].LastID
		current := sealed{Seal: seals[0]}
		done := func() error {
			err := visit(previous, current)
			previous, seals = current.Seal, seals[1:]
			if len(seals) > 0 {
				current = sealed{Seal: seals[0]}
			}
			return err
		}
		err = eachEntry(ctx, c.db, func(e sealedEntry, _ line) error {
			for len(seals) > 1 && e.id > current.LastID {
				if err := done(); err != nil {
					return err
				}
			}
			current.add(e)
			return nil
		}, `where id > $1 and id <= $2 order by id`, from, to)
		for err == nil && len(seals) > 0 {
			err = done()
		}
		if err != nil {
			return err
		}
		from = max(from, to)
	}
}
