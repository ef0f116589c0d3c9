package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // what was written down is read past the service
)

// witness looks past the service at what is written down in Postgres.
type witness struct {
	db   *sqlx.DB
	last []int // number of the last report of each vehicle, as of the last look
}

func openWitness(url string) (*witness, error) {
	db, err := sqlx.Open("postgres", url)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &witness{db: db}, nil
}

func (w *witness) close() { _ = w.db.Close() } // it has only read

// stale counts the vehicles whose last report is not what was written down.
func (w *witness) stale(ctx context.Context, last []int) (int, error) {
	w.last = last
	var rows []struct {
		Vehicle int     `db:"vehicle_id"`
		Mileage float64 `db:"mileage"`
	}
	err := w.db.SelectContext(ctx, &rows, `
		select vehicle_id, (fields #>> '{telemetry.mileage_km,v}')::float8 as mileage
		from snapshots where fields ? 'telemetry.mileage_km'`)
	if err != nil {
		return 0, fmt.Errorf("read what was written down: %w", err)
	}
	written := make([]int, len(last))
	for _, row := range rows {
		written[row.Vehicle-1] = sequenceOf(row.Mileage)
	}
	stale := 0
	for v, sent := range last {
		if sent != 0 && written[v] != sent {
			stale++
		}
	}
	return stale, nil
}

// unread asks the API for some vehicles, and counts those of which it does not say what they reported last.
func (w *witness) unread(ctx context.Context, public, token string, n int) (int, error) {
	unread := 0
	for range n {
		vehicle := rand.IntN(len(w.last)) + 1
		mileage, err := readMileage(ctx, public, token, vehicle)
		if err != nil {
			return n, err
		}
		if sent := w.last[vehicle-1]; sent != 0 && sequenceOf(mileage) != sent {
			unread++
		}
	}
	return unread, nil
}

func readMileage(ctx context.Context, public, token string, vehicle int) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, statusURL(public, vehicle), nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := asker.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read status: %w", err)
	}
	defer response.Body.Close()
	var said struct {
		Message string
		Data    struct {
			Telemetry struct {
				Mileage float64 `json:"mileage_km"`
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return 0, fmt.Errorf("read status: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read status: %d: %s", response.StatusCode, said.Message)
	}
	return said.Data.Telemetry.Mileage, nil
}
