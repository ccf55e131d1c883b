export type Theme = "auto" | "light" | "dark";

export const THEME_LABELS: Record<Theme, string> = { auto: "as the system", light: "light", dark: "dark" };
const STORED = "palaver.theme";
const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

export function readTheme(): Theme {
  const stored = document.documentElement.dataset["theme"];
  return stored === "light" || stored === "dark" ? stored : "auto";
}

/** As the system wants it, light, dark, and around again. Kept for the next visit. */
export function cycleTheme(): void {
  const theme = NEXT[readTheme()];
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  localStorage.setItem(STORED, theme);
}
