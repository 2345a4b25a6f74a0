// Files made in the browser, for the viewer to keep.

/** Texts that a spreadsheet would run are led by an apostrophe; numbers stay numbers. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** CSV of columns `{title, value(row)}` and rows. */
export function csv(columns, rows) {
  const lines = [columns.map((column) => cell(column.title)), ...Array.from(rows, (row) => columns.map((column) => cell(column.value(row))))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** Hand a file to the browser. */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function downloadCsv(name, columns, rows) {
  download(`${name}.csv`, new Blob([csv(columns, rows)], { type: "text/csv;charset=utf-8" }));
}
