import { printable } from './text';

// What a spreadsheet would compute at the beginning of a cell. Many read a semicolon, or the end of
// a line, as the end of a cell, too, whatever is quoted.
const formula = /(^|[;\t\r\n])([\s"']*[=+\-@＝＋－＠])/g;

// By it Excel knows that the file is UTF-8: without it, ü is Ã¼.
const byteOrderMark = '\ufeff';

/** A table as a file that spreadsheets read (RFC 4180). */
export function csv(rows: Cell[][]): string {
  return byteOrderMark + rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

function cell(value: Cell): string {
  let text = value === null || value === undefined ? '' : String(value);
  if (typeof value === 'string') text = printable(text).replace(formula, "$1'$2");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

type Cell = string | number | boolean | null | undefined;
/** A column of a file: a field of its rows, or a name and what it holds. */
export type Column<Row> = (keyof Row & string) | readonly [name: string, value: (row: Row) => Cell];

/** Rows with the names of their columns, as a file that spreadsheets read. */
export function csvOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const valueOf = (row: Row) => (column: Column<Row>) => (typeof column === 'string' ? (row[column] as Cell) : column[1](row));
  return csv([columns.map((c) => (typeof c === 'string' ? c : c[0])), ...rows.map((row) => columns.map(valueOf(row)))]);
}

/** Lets the browser save a file. */
export function save(name: string, text: string) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
