package areas

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/rental/areas"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// List returns the areas of an agency by name, or only the named one; or a *telematics.Error with
// telematics.AgencyNotFound. It reads only the geometries that are not cached.
func (a *Areas) List(ctx context.Context, id telematics.AgencyID, name string) ([]areas.Placed, error) {
	list, err := a.list(ctx, id, name)
	return list, unavailable.Wrap("list areas", err)
}

func (a *Areas) list(ctx context.Context, id telematics.AgencyID, name string) ([]areas.Placed, error) {
	current, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	cached := current.agencies[id]
	list, err := pg.Read(ctx, a.db.Lists, (*row).fields, func(r *row) (areas.Placed, error) {
		if r.geometry == nil {
			return cached.areas[r.Name], nil
		}
		return r.placed()
	}, `select `+uncached+` from areas where agency_id = $2 and $3::text in ('', name)
		order by name`, pq.Array(cached.appendVersions([]string{})), id, name)
	if err == nil && len(list) == 0 {
		var known bool
		if err = a.db.Lists.GetContext(ctx, &known, `select exists (select from agencies where id = $1)`, id); err == nil && !known {
			err = telematics.NoSuchAgency(id)
		}
	}
	return list, err
}

// Put carries out a change and adds its audit log entry, in one transaction. It returns the area as
// it is now, and whether it is new. Its error is a *telematics.Error with rental.AreaNotFound,
// AreaChanged or AreaLimit, or telematics.AgencyNotFound.
func (a *Areas) Put(ctx context.Context, c areas.Change) (now areas.Placed, added bool, err error) {
	err = pg.WithinLocks(ctx, a.db, func(tx *sqlx.Tx) error {
		before, err := lock(ctx, tx, c.Agency)
		if err != nil {
			return err
		}
		was, known := before[c.Name]
		switch {
		case !known && (c.Shape == nil || c.Version != ""):
			return rental.NoSuchArea(c.Agency, c.Name)
		case c.Version != "" && c.Version != was.String():
			return &telematics.Error{
				Code: rental.AreaChanged, Message: fmt.Sprintf("The area %s was changed since you read it: read it again.", c.Name),
			}
		}
		changed := map[string]*areas.Placed{c.Name: nil}
		if c.Shape != nil {
			changed[c.Name] = &areas.Placed{Area: c.Area, Shape: *c.Shape}
		}
		if _, err := Write(ctx, tx, c.Agency, changed); err != nil {
			return err
		}
		if c.Shape != nil {
			var r row
			_, err := pg.One(ctx, tx, r.fields(), `select `+columns+` from areas where agency_id = $1 and name = $2`, c.Agency, c.Name)
			if err != nil {
				return err
			}
			if now, err = r.placed(); err != nil {
				return err
			}
		}
		added = !known
		c.Entry.Agency, c.Entry.Outcome = c.Agency, telematics.Executed
		c.Entry.Details = map[string]any{"area": c.Name}
		if c.Shape != nil {
			c.Entry.Details["kind"], c.Entry.Details["points"] = c.Kind, now.Shape.Points()
		}
		return activity.Insert(ctx, tx, c.Entry)
	})
	return now, added, unavailable.Wrap("change areas", err)
}

// Lock locks the areas of an agency against other changes until the transaction ends. It locks no
// row of the agency: the role of the service may not.
func Lock(ctx context.Context, tx *sqlx.Tx, id telematics.AgencyID) error {
	_, err := tx.ExecContext(ctx, `select pg_advisory_xact_lock(hashtextextended('areas', $1))`, id)
	return err
}

// lock is Lock, and returns the versions of the areas.
func lock(ctx context.Context, tx *sqlx.Tx, id telematics.AgencyID) (map[string]uuid.UUID, error) {
	if err := Lock(ctx, tx, id); err != nil {
		return nil, err
	}
	var agencies []int64
	err := tx.SelectContext(ctx, &agencies, `select id from agencies where id = $1`, id)
	if err != nil {
		return nil, err
	}
	if agencies == nil {
		return nil, telematics.NoSuchAgency(id)
	}
	return pg.Pairs[string, uuid.UUID](ctx, tx, `select name, version from areas where agency_id = $1`, id)
}

// record is an area as it is written.
type record struct {
	Name     string          `json:"name"`
	Kind     rental.AreaKind `json:"kind"`
	Geometry areas.Shape     `json:"geometry"`
}

// records returns the areas that have a value, as JSON, and the names of all.
func records(changed map[string]*areas.Placed) (set []byte, names []string, err error) {
	list, names := []record{}, []string{}
	for name, area := range changed {
		names = append(names, name)
		if area != nil {
			list = append(list, record{name, area.Kind, area.Shape})
		}
	}
	set, err = json.Marshal(list)
	return set, names, err
}

// CheckLimits returns a *telematics.Error with rental.AreaLimit where an agency would have more
// than it may once some areas are changed, as by Write.
func CheckLimits(ctx context.Context, db pg.Querier, id telematics.AgencyID, changed map[string]*areas.Placed) error {
	set, names, err := records(changed)
	if err != nil {
		return err
	}
	return checkLimits(ctx, db, id, set, names)
}

func checkLimits(ctx context.Context, db pg.Querier, id telematics.AgencyID, set []byte, names []string) error {
	var count, bytes int
	if _, err := pg.One(ctx, db, []any{&count, &bytes}, `
		select count(*) as areas, coalesce(sum(octet_length(geometry::text)), 0) as bytes
		from (
			select geometry from areas where agency_id = $1 and name <> all ($3::text[])
			union all
			select geometry from jsonb_to_recordset($2::jsonb) as area (geometry jsonb)
		) all_areas`, id, set, pq.Array(names)); err != nil {
		return err
	}
	switch {
	case count > areas.MaxAreas:
		return limit("An agency has at most %d areas: remove one first.", areas.MaxAreas)
	case bytes > areas.MaxTotal:
		return limit("All areas of an agency have at most %d bytes; these have %d: use fewer positions.", areas.MaxTotal, bytes)
	}
	return nil
}

// Write sets the areas of an agency that have a value, and removes those without one. Others stay.
// What is as it should be stays, too, with its version. It returns how many it has changed. The
// caller has locked the agency. Its error may be that of CheckLimits.
func Write(ctx context.Context, tx *sqlx.Tx, id telematics.AgencyID, changed map[string]*areas.Placed) (count int, err error) {
	set, names, err := records(changed)
	if err == nil {
		err = checkLimits(ctx, tx, id, set, names)
	}
	if err != nil {
		return 0, err
	}
	err = tx.GetContext(ctx, &count, `
		with area as (
			select * from jsonb_to_recordset($2::jsonb) as area (name text, kind text, geometry jsonb)
		), removed as (
			delete from areas where agency_id = $1 and name = any ($3) and name not in (select name from area) returning name
		), written as (
			insert into areas (agency_id, name, kind, geometry)
			select $1, name, kind, geometry from area
			on conflict (agency_id, name) do update
			set kind = excluded.kind, geometry = excluded.geometry, version = default, changed_at = default
			where (areas.kind, areas.geometry) is distinct from (excluded.kind, excluded.geometry)
			returning name
		)
		select (select count(*) from removed) + (select count(*) from written)`, id, set, pq.Array(names))
	return count, err
}

func limit(format string, args ...any) error {
	return &telematics.Error{Code: rental.AreaLimit, Message: fmt.Sprintf(format, args...)}
}
