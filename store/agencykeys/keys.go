// Package agencykeys stores the keys with which agencies sign requests, encrypted, and the
// signatures that were used, in Postgres.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package agencykeys

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/singleflight"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Within is the time after which every instance uses a change of the keys.
const Within = time.Second

// Keys caches the keys with which agencies' apps sign requests. All are read in one query, at most
// once in Within, so that invented ids cause no queries. It is safe for concurrent use.
type Keys struct {
	db     *pg.DB
	sealer *Sealer
	now    func() time.Time

	reading singleflight.Group
	mu      sync.Mutex
	cached  *cachedKeys // nil: nothing was read yet
	changes int         // made here
}

// cachedKeys are the keys that were read at a time.
type cachedKeys struct {
	at   time.Time
	byID map[string]cachedKey
}

type cachedKey struct {
	rental.AgencyKey
	err error // its secret cannot be opened
}

// New returns the keys, whose secrets the sealer opens.
func New(db *pg.DB, sealer *Sealer) *Keys {
	return &Keys{db: db, sealer: sealer, now: time.Now}
}

// AgencyKey returns a key in any state; false: there is none. The result is at most Within old. For
// a secret that cannot be opened it returns an error for which unavailable.Is is true.
func (k *Keys) AgencyKey(ctx context.Context, id string) (rental.AgencyKey, bool, error) {
	if !k.sealer.has() {
		return rental.AgencyKey{}, false, fmt.Errorf("read agency keys: %w", errNoSealer)
	}
	cached, err := k.current(ctx)
	if err != nil {
		return rental.AgencyKey{}, false, err
	}
	key, ok := cached.byID[id]
	return key.AgencyKey, ok, key.err
}

// current returns the keys as they were read less than Within ago, or reads them: concurrent
// callers share one reading, unless it had begun long before.
func (k *Keys) current(ctx context.Context) (*cachedKeys, error) {
	k.mu.Lock()
	cached := k.cached
	k.mu.Unlock()
	for asked := k.now(); cached == nil || asked.Sub(cached.at) >= Within; {
		// A caller whose context ends must not end the read for the others.
		reading := k.reading.DoChan("", func() (any, error) { return k.read(context.WithoutCancel(ctx)) })
		select {
		case <-ctx.Done():
			return nil, unavailable.Wrap("read agency keys", ctx.Err())
		case result := <-reading:
			if result.Err != nil {
				return nil, unavailable.Wrap("read agency keys", result.Err)
			}
			cached = result.Val.(*cachedKeys)
		}
	}
	return cached, nil
}

func (k *Keys) read(ctx context.Context) (*cachedKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, k.db.Timeout())
	defer cancel()
	k.mu.Lock()
	changes := k.changes
	k.mu.Unlock()
	// The time is taken before the read, so that the keys are not cached for too long.
	cached := &cachedKeys{at: k.now(), byID: map[string]cachedKey{}}
	rows, err := k.rows(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		key := cachedKey{AgencyKey: row.key()}
		if key.Secret, _, err = k.sealer.open(row.sealed, row.owner()); err != nil {
			key.err = fmt.Errorf("open the secret of agency key %s: %w", key.ID, err)
		}
		cached.byID[key.ID] = key
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changes == changes {
		k.cached = cached
	}
	return cached, nil
}

// forget clears the cache, so that the next call reads the keys again.
func (k *Keys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cached = nil
	k.changes++
	k.reading.Forget("") // one in flight may have begun before the change
}

// agencyKeyRow is a key as it is stored.
type agencyKeyRow struct {
	rental.AgencyKey
	sealed []byte
}

// fields are where agencyKeyColumns go.
func (r *agencyKeyRow) fields() []any {
	return []any{&r.ID, &r.Agency, &r.AgencyCode, &r.sealed, &r.State, pg.UTC(&r.Retires), pg.UTC(&r.Created)}
}

func (r agencyKeyRow) key() rental.AgencyKey { return r.AgencyKey }

// owner binds the secret to its row: a sealed secret that is copied to another agency's key does
// not open there.
func (r agencyKeyRow) owner() string { return fmt.Sprintf("agency key %s of %d", r.ID, r.Agency) }

const agencyKeyColumns = `k.id, k.agency_id, a.code, k.sealed, k.state, k.retires_at, k.created_at`

func (k *Keys) rows(ctx context.Context) ([]agencyKeyRow, error) {
	return pg.Read(ctx, k.db.Pool, (*agencyKeyRow).fields, pg.Itself, `
		select `+agencyKeyColumns+` from agency_keys k join agencies a on a.id = k.agency_id
		order by k.agency_id, k.created_at, k.id`)
}

// List returns all keys, by agency and age, without their secrets.
func (k *Keys) List(ctx context.Context) ([]rental.AgencyKey, error) {
	rows, err := k.rows(ctx)
	if err != nil {
		return nil, unavailable.Wrap("list agency keys", err)
	}
	return pg.Map(rows, agencyKeyRow.key), nil
}

// Add makes a key for an agency, with its audit log entry, and returns it with its secret, which
// cannot be read from the database without the installation's key. It reports false where there is
// no such agency.
func (k *Keys) Add(ctx context.Context, agency telematics.AgencyID, by telematics.Author) (rental.AgencyKey, bool, error) {
	const idSize = 16 // of 5 bits each
	row := agencyKeyRow{AgencyKey: rental.AgencyKey{ID: "ak_" + strings.ToLower(rand.Text()[:idSize]), Agency: agency}}
	secret := newSecret(rental.SecretSize)
	sealed, err := k.sealer.seal(secret, row.owner())
	if err != nil {
		return rental.AgencyKey{}, false, fmt.Errorf("add agency key: %w", err)
	}
	key, found, err := k.change(ctx, "add agency key", rental.AgencyKeyAdd, by, "", `
		with k as (
			insert into agency_keys (id, agency_id, sealed) select $1::text, id, $2::bytea from agencies where id = $3::bigint
				and (select count(*) from agency_keys where agency_id = $3 and created_at > clock_timestamp() - interval '1 day') < $4
			returning *
		)`, row.ID, sealed, agency, rental.NewKeysADay)
	if err == nil && !found {
		var exists bool
		if err := k.db.Pool.GetContext(ctx, &exists, `select exists (select from agencies where id = $1)`, agency); exists || err != nil {
			return rental.AgencyKey{}, exists, unavailable.Wrap("add agency key", cmp.Or(err, rental.ErrKeysUsedUp))
		}
	}
	key.Secret = secret
	return key, found, err
}

// Opened counts the keys that are not revoked (all), and those of them whose secrets can be opened.
// An instance that can open none of several has the key of another installation.
func (k *Keys) Opened(ctx context.Context) (opened, all int, err error) {
	rows, err := k.rows(ctx)
	if err != nil {
		return 0, 0, unavailable.Wrap("open agency keys", err)
	}
	for _, row := range rows {
		if row.State == rental.KeyRevoked {
			continue
		}
		all++
		if _, _, err := k.sealer.open(row.sealed, row.owner()); err == nil {
			opened++
		}
	}
	return opened, all, nil
}

// Retire sets the time at which a key expires, with its audit log entry; a second call changes the
// time. It reports false where there is no such key, where it is revoked, or where it belongs to
// another agency than the given one (zero: any).
func (k *Keys) Retire(
	ctx context.Context, agency telematics.AgencyID, id string, until time.Time, by telematics.Author,
) (rental.AgencyKey, bool, error) {
	return k.change(ctx, "retire agency key", rental.AgencyKeyRetire, by, " until "+until.UTC().Format(time.RFC3339), `
		with k as (
			update agency_keys set state = 'retiring', retires_at = $2::timestamptz where id = $1::text and state <> 'revoked'
			and $3::bigint in (0, agency_id)
			returning *
		)`, id, pg.Timestamp(until), agency)
}

// Revoke revokes a key immediately and permanently, with its audit log entry. It reports false
// where there is no such key, or where it belongs to another agency than the given one (zero: any).
func (k *Keys) Revoke(ctx context.Context, agency telematics.AgencyID, id string, by telematics.Author) (rental.AgencyKey, bool, error) {
	return k.change(ctx, "revoke agency key", rental.AgencyKeyRevoke, by, "", `
		with k as (
			update agency_keys set state = 'revoked', retires_at = null where id = $1::text and $2::bigint in (0, agency_id)
			returning *
		)`, id, agency)
}

// change runs a change of one key, k, and adds its audit log entry, in one statement.
func (k *Keys) change(
	ctx context.Context, doing, activity string, by telematics.Author, note, change string, args ...any,
) (rental.AgencyKey, bool, error) {
	defer k.forget()
	for _, arg := range args {
		if text, ok := arg.(string); ok && !pg.Searchable(text) {
			return rental.AgencyKey{}, false, nil
		}
	}
	var row agencyKeyRow
	n := len(args)
	statement := fmt.Sprintf(change+`, recorded as (
			insert into activity (at, actor_subject, actor_role, actor_agency_id, agency_id, action, outcome, code, request_id, latency_us,
			late, note)
			select clock_timestamp(), $%d::text, $%d::text, nullif($%d::bigint, 0), agency_id, $%d::text, '', '', $%d::uuid, 0, false,
			id || $%d::text from k
		)
		select `+agencyKeyColumns+` from k join agencies a on a.id = k.agency_id`, n+1, n+2, n+3, n+4, n+5, n+6)
	var found bool
	err := k.db.Within(ctx, func(tx *sqlx.Tx) (err error) {
		// One change at a time, so that concurrent ones do not exceed the number of new keys.
		if _, err := tx.ExecContext(ctx, `select pg_advisory_xact_lock(hashtextextended('agency keys', 0))`); err != nil {
			return err
		}
		args = append(args, by.Subject, by.Role, by.Agency, activity, pg.Nullable(by.RequestID), note)
		found, err = pg.One(ctx, tx, row.fields(), statement, args...)
		return err
	})
	return row.key(), found && err == nil, unavailable.Wrap(doing, err)
}

// Reseal seals all secrets with the first key, so that the other keys can be removed. It returns
// the number of resealed secrets. A secret that no key opens is an error; the others are resealed
// all the same.
func (k *Keys) Reseal(ctx context.Context) (int, error) {
	rows, err := k.rows(ctx)
	if err != nil {
		return 0, unavailable.Wrap("reseal agency keys", err)
	}
	done := 0
	var failed []error
	for _, row := range rows {
		secret, first, err := k.sealer.open(row.sealed, row.owner())
		if err == nil && !first {
			if err = k.reseal(ctx, row, secret); err == nil {
				done++
			}
		}
		if err != nil {
			failed = append(failed, unavailable.Wrap("reseal agency key "+row.ID, err))
		}
	}
	return done, errors.Join(failed...)
}

func (k *Keys) reseal(ctx context.Context, row agencyKeyRow, secret []byte) error {
	sealed, err := k.sealer.seal(secret, row.owner())
	if err != nil {
		return err
	}
	return k.db.Exec(ctx, `update agency_keys set sealed = $2 where id = $1 and sealed = $3`, row.ID, sealed, row.sealed)
}
