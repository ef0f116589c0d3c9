// Package migrations holds the schema: numbered SQL files, forward only.
package migrations

import "embed"

// Files are the migrations, by name.
//
//go:embed *.sql
var Files embed.FS
