/** Passes on the first call and ignores all later calls. */
export function once<T>(call: (value: T) => void): (value: T) => void {
  let isCalled = false;
  return (value) => {
    if (isCalled) return;
    isCalled = true;
    call(value);
  };
}
