// Package areas stores the areas of agencies in Postgres, and finds the areas at a position in
// memory.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package areas

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
	"golang.org/x/sync/singleflight"

	"motorpool/rental"
	"motorpool/rental/areas"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Within is the time after which every instance uses a change of the areas.
const Within = time.Second

// Areas finds, lists and changes areas. The first search after Within asks Postgres which areas
// have another version, for all agencies in one query, and reads only those. It is safe for
// concurrent use; a search takes no lock.
type Areas struct {
	db  *pg.DB
	now func() time.Time

	reading singleflight.Group
	cached  atomic.Pointer[cached] // nil: nothing was read yet
}

// cached is what was read at a time. It never changes.
type cached struct {
	at       time.Time
	agencies map[telematics.AgencyID]agency
}

type agency struct {
	areas map[string]areas.Placed
	index *areas.Index
}

func (a agency) appendVersions(versions []string) []string {
	for _, area := range a.areas {
		versions = append(versions, area.Version.String())
	}
	return versions
}

// New returns the areas of all agencies.
func New(db *pg.DB) *Areas { return &Areas{db: db, now: time.Now} }

// At implements rental.Areas. The result is at most Within old.
func (a *Areas) At(ctx context.Context, id telematics.AgencyID, at telematics.Position) ([]rental.Area, rental.AreaKind, error) {
	current, err := a.current(ctx)
	if err != nil {
		return nil, "", unavailable.Wrap("read areas", err)
	}
	its, ok := current.agencies[id]
	if !ok {
		return nil, "", nil
	}
	in, ends := its.index.At(at)
	return in, ends, nil
}

// current returns the areas as they were read less than Within ago, or reads them: concurrent
// callers share one reading, unless it had begun long before.
func (a *Areas) current(ctx context.Context) (*cached, error) {
	c := a.cached.Load()
	for asked := a.now(); c == nil || asked.Sub(c.at) >= Within; {
		// A caller whose context ends must not end the read for the others.
		reading := a.reading.DoChan("", func() (any, error) { return a.read(context.WithoutCancel(ctx)) })
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case result := <-reading:
			if result.Err != nil {
				return nil, result.Err
			}
			c = result.Val.(*cached)
		}
	}
	return c, nil
}

// read reads the areas whose versions are not cached.
func (a *Areas) read(ctx context.Context) (*cached, error) {
	ctx, cancel := context.WithTimeout(ctx, a.db.Timeout())
	defer cancel()
	before := a.cached.Load()
	if before == nil {
		before = &cached{}
	}
	versions := []string{} // not nil, which would be null
	for _, its := range before.agencies {
		versions = its.appendVersions(versions)
	}
	// The time is taken before the read, so that the areas are not cached for too long.
	c := &cached{at: a.now(), agencies: map[telematics.AgencyID]agency{}}
	rows, err := pg.Read(ctx, a.db.Pool, (*row).fields, pg.Itself, `select `+uncached+` from areas`, pq.Array(versions))
	if err != nil {
		return nil, err
	}
	changed := map[telematics.AgencyID]bool{}
	for _, r := range rows {
		id := r.agency
		if c.agencies[id].areas == nil {
			c.agencies[id] = agency{areas: map[string]areas.Placed{}}
		}
		if r.geometry == nil {
			c.agencies[id].areas[r.Name] = before.agencies[id].areas[r.Name]
			continue
		}
		if c.agencies[id].areas[r.Name], err = r.placed(); err != nil {
			return nil, err
		}
		changed[id] = true
	}
	for id, its := range c.agencies {
		if was := before.agencies[id]; !changed[id] && len(its.areas) == len(was.areas) {
			c.agencies[id] = was
			continue
		}
		its.index = areas.NewIndex(its.areas)
		c.agencies[id] = its
	}
	a.cached.Store(c)
	return c, nil
}

// row is an area as it is stored.
type row struct {
	agency telematics.AgencyID
	areas.Placed
	geometry []byte // nil: not read
}

// fields are where columns, or uncached ones, go.
func (r *row) fields() []any {
	return []any{&r.agency, &r.Name, &r.Kind, &r.Version, pg.UTC(&r.Changed), &r.geometry}
}

// Read returns the areas of some agencies.
func Read(ctx context.Context, db pg.Querier, ids []int64) (map[telematics.AgencyID][]areas.Placed, error) {
	found := map[telematics.AgencyID][]areas.Placed{}
	_, err := pg.Read(ctx, db, (*row).fields, func(r *row) (placed areas.Placed, err error) {
		placed, err = r.placed()
		found[r.agency] = append(found[r.agency], placed)
		return placed, err
	}, `select `+columns+` from areas where agency_id = any ($1)`, pq.Array(ids))
	return found, err
}

const columns = `agency_id, name, kind, version, changed_at, geometry`

// uncached are the columns without the geometries of versions that are cached, $1.
const uncached = `agency_id, name, kind, version, changed_at, case when version <> all ($1::uuid[]) then geometry end as geometry`

func (r *row) placed() (p areas.Placed, err error) {
	p = r.Placed
	if p.Shape, err = areas.Stored(r.geometry); err != nil {
		return areas.Placed{}, fmt.Errorf("read area %s of agency %d: %w", r.Name, r.agency, err)
	}
	return p, nil
}
