// Runs before the first paint, as a plain script: a theme chosen by hand must not flash in the other one first.
{
  const theme = localStorage.getItem("palaver.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
}
