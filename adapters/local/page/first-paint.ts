// Runs before the first paint as a plain script, so that the page does not flash in the wrong theme.
{
  const theme = localStorage.getItem("palaver.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
}
