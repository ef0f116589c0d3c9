-- +goose Up

-- Nothing seals the audit log any more (docs/adr/0129-no-evidence-against-the-owner-of-the-database.md), and addresses are kept in memory
-- (docs/adr/0018-addresses.md). The tables stay for one release: an instance of v0.7.0 asks for its rights to them, and would not be ready
-- without them.
comment on table activity_seals is 'not used since 0.8.0; dropped by the release after it';
comment on table addresses is 'not used since 0.8.0; dropped by the release after it';
comment on table geocoder_turn is 'not used since 0.8.0; dropped by the release after it';
