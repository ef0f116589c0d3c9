package vehicles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/rental/areas"
	stored "motorpool/store/areas"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// agencyAreas are the areas of one agency by name; nil: there is none of that name, or there is to
// be none.
type agencyAreas map[string]*areas.Placed

// areas reads the areas that an agency sets. Others stay, unless the whole field is null.
func (p *part) areas(before agencyAreas) agencyAreas {
	named, is := take[map[string]json.RawMessage](p, "areas", "an object of areas by their names")
	changed := agencyAreas{}
	if is == null {
		for name := range before {
			changed[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		changed[name] = nil
		if !rental.AreaName.MatchString(name) {
			p.problem("areas", "%.64q: want a name of lower-case letters, digits, '.', '_' and '-', at most 64", name)
		}
		if string(named[name]) != "null" {
			area := newPart(fmt.Sprintf("%s.areas.%s", p.place, name), named[name], p.problems)
			area.known = before[name] != nil
			changed[name] = area.area(name, cmp.Or(before[name], &areas.Placed{}))
		}
	}
	return changed
}

func (p *part) area(name string, before *areas.Placed) *areas.Placed {
	defer p.end()
	area := &areas.Placed{Area: rental.Area{Name: name, Kind: oneOf(p, "kind", rental.AreaKinds, before.Kind, "")}, Shape: before.Shape}
	geometry, read := needed(p, "geometry", "GeoJSON", json.RawMessage(nil))
	if !read {
		return area
	}
	shape, err := areas.ParseShape("geometry", geometry)
	if wrong, ok := errors.AsType[*rental.FieldError](err); ok {
		p.problem(wrong.Field, "%s", strings.TrimPrefix(wrong.Message, "is not valid: "))
	}
	area.Shape = shape
	return area
}

// describedArea returns the area in words; nil: it has no kind and no shape.
func describedArea(a *areas.Placed) described {
	if a == nil {
		return plain([][2]string{{"kind", ""}, {"shape", ""}})
	}
	shape, _ := json.Marshal(a.Shape) // a shape always can be
	return described{
		{field: "kind", value: string(a.Kind)},
		{field: "shape", value: fmt.Sprintf("%d points", a.Shape.Points()), hidden: string(shape), other: "another shape"},
	}
}

// differences compares the areas that a file sets with those on record.
func (changed agencyAreas) differences(id telematics.AgencyID, before agencyAreas) (list []Difference) {
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		var was described
		if before[name] != nil || changed[name] == nil {
			was = describedArea(before[name])
		}
		list = append(list, differences(fmt.Sprintf("area %s of agency %d", name, id), was, describedArea(changed[name]))...)
	}
	return list
}

// readAreas reads the areas of those agencies whose parts set some.
func readAreas(ctx context.Context, db pg.Querier, named []*part) (map[telematics.AgencyID]agencyAreas, error) {
	var ids []int64
	for _, p := range named {
		if p.fields["areas"] != nil {
			ids = append(ids, p.number)
		}
	}
	if ids == nil {
		return nil, nil
	}
	found, err := stored.Read(ctx, db, ids)
	all := map[telematics.AgencyID]agencyAreas{}
	for id, list := range found {
		all[id] = agencyAreas{}
		for _, area := range list {
			all[id][area.Name] = &area
		}
	}
	return all, err
}

// tooManyAreas returns an error for each agency that would have more areas than it may.
func (c FleetChanges) tooManyAreas(ctx context.Context, db pg.Querier, file FleetFile) (problems []error, err error) {
	for i, a := range file.Agencies {
		if len(file.Areas[a.ID]) == 0 {
			continue
		}
		err := stored.CheckLimits(ctx, db, a.ID, file.Areas[a.ID])
		var limit *telematics.Error
		switch {
		case errors.As(err, &limit):
			problems = append(problems, problem{c.agencies[i].place, "areas", limit.Message})
		case err != nil:
			return nil, err
		}
	}
	return problems, nil
}

// importAreas locks the areas of the agencies of which it writes some, in the order of their ids.
func importAreas(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	total := 0
	for _, id := range slices.Sorted(maps.Keys(file.Areas)) {
		if len(file.Areas[id]) == 0 {
			continue
		}
		if err := stored.Lock(ctx, tx, id); err != nil {
			return 0, err
		}
		n, err := stored.Write(ctx, tx, id, file.Areas[id])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
