package pg

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// partitionIndexLock is the advisory lock of the instance that builds indexes of partitions.
const partitionIndexLock = 0x6d6f746f72706f6f // "motorpoo"

// missingIndex is an index of a partitioned table that a partition lacks.
type missingIndex struct {
	Parent    string `db:"parent"`
	Partition string `db:"partition"`
	Name      string `db:"name"`   // that the partition's will have
	Method    string `db:"method"` // what follows the table in its definition
}

// indexPartitions builds the missing indexes of partitions, each concurrently with writes to its
// partition: Postgres cannot do so for a partitioned table as a whole. A migration adds the index
// of the table, with "on only". One instance builds at a time.
func indexPartitions(ctx context.Context, db *sqlx.DB) error {
	conn, err := db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var mine bool
	// It must not wait for the lock: building an index waits for all transactions that wait.
	if err := conn.GetContext(ctx, &mine, `select pg_try_advisory_lock($1)`, partitionIndexLock); err != nil || !mine {
		return err
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, partitionIndexLock)
	}() // or with the session
	// Building waits for older transactions, and delays none meanwhile.
	if _, err := conn.ExecContext(ctx, `set lock_timeout = '1min'`); err != nil {
		return err
	}
	var missing []missingIndex
	if err := conn.SelectContext(ctx, &missing, `
		select parent.relname as parent, partition.relname as partition,
			partition.relname || substr(parent.relname, length(owner.relname) + 1) as name,
			regexp_replace(pg_get_indexdef(parent.oid), '^.* ON ONLY \S+ ', '') as method
		from pg_index i join pg_class parent on parent.oid = i.indexrelid join pg_class owner on owner.oid = i.indrelid
			join pg_inherits of on of.inhparent = owner.oid join pg_class partition on partition.oid = of.inhrelid
		where parent.relkind = 'I' and not i.indisvalid and parent.relnamespace = current_schema()::regnamespace
			and not exists (select from pg_index p join pg_inherits attached on attached.inhrelid = p.indexrelid
				where p.indrelid = partition.oid and attached.inhparent = parent.oid)
		order by parent, partition desc`); err != nil {
		return fmt.Errorf("find partitions without an index: %w", err)
	}
	for _, m := range missing {
		name := pq.QuoteIdentifier(m.Name)
		for _, statement := range []string{
			`drop index concurrently if exists ` + name, // of an attempt that was broken off
			`create index concurrently ` + name + ` on ` + pq.QuoteIdentifier(m.Partition) + ` ` + m.Method,
			`alter index ` + pq.QuoteIdentifier(m.Parent) + ` attach partition ` + name,
		} {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("build %s: %w", m.Name, err)
			}
		}
	}
	return nil
}
