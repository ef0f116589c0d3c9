/** More rows than that make the fleet's page slow; filters lead to the others. */
export const rowsShown = 500;
