package commands

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// List implements httpapi.Fleet.
func (s *Store) List(ctx context.Context, q telematics.CommandQuery) ([]telematics.Command, error) {
	if !pg.Searchable(q.Actor) {
		return nil, nil
	}
	query, args := listStatement(q)
	if query == "" {
		return nil, nil
	}
	commands, err := selectCommands(ctx, s.db.Lists, query, args...)
	return commands, unavailable.Wrap("read commands", err)
}

// listStatement returns the statement of a query, empty where nothing can match. Each part of it
// reads at most a page of rows, in the order of an index: each state separately, since the indexes
// of agencies and actors have the state before the id.
func listStatement(q telematics.CommandQuery) (query string, args []any) {
	parameter := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	var wheres []string
	where := func(condition string, value any) { wheres = append(wheres, condition+parameter(value)) }
	limit := parameter(q.Limit)
	if q.Vehicle != 0 {
		where("vehicle_id = ", int64(q.Vehicle))
	}
	if q.Agency != 0 {
		where("agency_id = ", int64(q.Agency))
	}
	if q.Actor != "" {
		where("actor_subject = ", q.Actor)
	}
	if q.Before != uuid.Nil {
		where("id < ", q.Before)
	}
	if !q.From.IsZero() {
		where("requested_at >= ", *pg.Timestamp(q.From))
		where("id >= ", leastID(q.From.Add(-idTolerance)))
	}
	if !q.To.IsZero() {
		where("requested_at < ", *pg.Timestamp(q.To))
		where("id < ", leastID(q.To.Add(idTolerance)))
	}
	// Forces the index of the vehicle, which the planner might not choose because of the limit: a
	// vehicle has few commands, and none of a rare kind among the newest of all vehicles.
	order := "id desc"
	if q.Vehicle != 0 {
		order = "coalesce(id, id) desc"
	}
	page := ` order by ` + order + ` limit nullif(` + limit + `::bigint, 0)`
	var parts []string
	switch {
	case q.States == nil && q.Agency == 0 && q.Actor == "" || q.Vehicle != 0:
		if q.States != nil {
			wheres = append(wheres, "state = any ("+parameter(pq.Array(q.States))+"::text[])")
		}
		for _, table := range []string{"commands", "settled_commands"} {
			part := `select ` + commandColumns + ` from ` + table
			if len(wheres) > 0 {
				part += ` where ` + strings.Join(wheres, " and ")
			}
			parts = append(parts, "("+part+page+")")
		}
	default:
		// The states are literals, so that the planner knows how rare each is.
		part := func(table string, states ...telematics.State) {
			names := pg.Map(states, func(s telematics.State) string { return string(s) })
			conditions := append([]string{"state in ('" + strings.Join(names, "', '") + "')"}, wheres...)
			parts = append(parts, `(select `+commandColumns+` from `+table+` where `+strings.Join(conditions, " and ")+page+`)`)
		}
		wanted := q.States
		if wanted == nil {
			wanted = telematics.States
		}
		if q.Agency == 0 && q.Actor != "" && len(wanted) > 0 {
			part("commands", wanted...) // has no index of actors, so it is read once
		}
		for _, state := range wanted {
			if q.Agency != 0 || q.Actor == "" {
				part("commands", state)
			}
			if !state.IsOpen() {
				part("settled_commands", state)
			}
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	return `select * from (` + strings.Join(parts, ` union all `) + `) as listed
		order by id desc limit nullif(` + limit + `::bigint, 0)`, args
}

// leastID returns the least id of a time: see command_id_at.
func leastID(at time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:], uint64(max(0, at.UnixMilli()))<<16)
	return id
}
