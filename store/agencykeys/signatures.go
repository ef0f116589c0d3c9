package agencykeys

import (
	"context"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Signatures stores in Postgres which signatures were used for changes, for all instances. It is
// safe for concurrent use.
type Signatures struct {
	db        *pg.DB
	perClient int
}

// NewSignatures returns the store of used signatures, which accepts up to perClient fresh ones of a
// client.
func NewSignatures(db *pg.DB, perClient int) *Signatures { return &Signatures{db, perClient} }

// freshFor and ahead are the bounds of a fresh signature by Postgres's clock, in seconds: those of
// the instances, whose clocks may be a second off [LAW-11], rounded up. forgottenAfter is for a
// clock of Postgres that is set back.
const (
	freshFor       = "302"
	ahead          = "302"
	forgottenAfter = "600"
)

// Use implements auth.SignatureUses, by Postgres's clock alone.
func (s *Signatures) Use(ctx context.Context, u rental.SignatureUse) (rental.UseResult, error) {
	var fresh, room, first bool
	// The library repeats a statement whose reply was lost: then the conflicting row may be that of
	// this call.
	_, err := pg.One(ctx, s.db.Clients, []any{&fresh, &room, &first}, `
		with asked as (
			select to_timestamp($5) between now() - interval '`+freshFor+` s' and now() + interval '`+ahead+` s' as fresh,
				(select count(*) from (
					select from used_signatures
					where agency_id = $3 and subject = $4 and expires_at > now() limit $7) as used) < $7 as room),
		used as (
			insert into used_signatures (key_id, nonce, agency_id, subject, attempt, expires_at)
			select $1, $2, $3, $4, $6, to_timestamp($5) + interval '`+freshFor+` s' from asked where fresh and room
			on conflict do nothing
			returning attempt)
		select fresh, room, exists (select from used)
			or exists (select from used_signatures where key_id = $1 and nonce = $2 and attempt = $6) as first
		from asked`,
		u.Key, u.Nonce, u.Actor.Agency, u.Actor.Subject, u.At.Unix(), uuid.New(), s.perClient)
	switch {
	case err != nil:
		return 0, unavailable.Wrap("use a signature up", err)
	case first:
		return rental.FirstUse, nil
	case !fresh:
		return rental.NotFresh, nil
	case !room:
		return rental.TooManyUses, nil
	}
	return rental.UsedBefore, nil
}

// ForgetSignatures removes used signatures that are not fresh any more, up to limit of them, and
// reports whether there may be others.
func ForgetSignatures(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	return db.Forget(ctx, "forget used signatures", `
		delete from used_signatures where (key_id, nonce) in (
			select key_id, nonce from used_signatures
			where expires_at < now() - interval '`+forgottenAfter+` s' order by expires_at limit $1 for update skip locked)`, limit)
}
