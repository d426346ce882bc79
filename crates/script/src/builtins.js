// The functions that Riak 2.x has built in, with the results that its users know. Where a result
// looks odd (reduceLimit), it is Riak's.
var RiakHelper = {
  numericSorter: function (a, b) { return a - b; }
};

var Riak = {
  getClassName: function (value) {
    var maker = value === undefined || value === null ? undefined : value.constructor;
    return typeof maker === 'function' && maker.name !== '' ? maker.name : undefined;
  },

  filterNotFound: function (values) {
    return values.filter(function (value) {
      return typeof value !== 'object' || value === null || value.not_found === undefined;
    });
  },

  mapValues: function (object, keyData, arg) {
    if (object.not_found) return [object];
    var data = object.values[0].data;
    return Array.isArray(data) ? data : [data];
  },

  mapValuesJson: function (object, keyData, arg) {
    if (object.not_found) return [object];
    return Riak.mapValues(object, keyData, arg).map(function (text) { return JSON.parse(text); });
  },

  mapByFields: function (object, keyData, fields) {
    if (object.not_found) return [];
    var record = Riak.mapValuesJson(object)[0];
    for (var name in fields) {
      if (record === null || record[name] != fields[name]) return [];
    }
    return [record];
  },

  reduceSum: function (values, arg) {
    var found = Riak.filterNotFound(values);
    return found.length === 0 ? [0] : [found.reduce(function (sum, value) { return sum + value; })];
  },

  reduceMin: function (values, arg) {
    return values.length === 0 ? [] : [values.reduce(function (a, b) { return a < b ? a : b; })];
  },

  reduceMax: function (values, arg) {
    return values.length === 0 ? [] : [values.reduce(function (a, b) { return a > b ? a : b; })];
  },

  // The argument is the source of a function that compares two values.
  reduceSort: function (values, arg) {
    var compare;
    try {
      compare = (0, eval)(typeof arg === 'string' ? '(' + arg + '\n)' : arg);
      return values.sort(compare);
    } catch (e) {
      return values.sort();
    }
  },

  reduceNumericSort: function (values, arg) {
    return values.sort(RiakHelper.numericSorter);
  },

  // One value fewer than the argument says, as in Riak.
  reduceLimit: function (values, arg) {
    return values.slice(0, arg - 1);
  },

  reduceSlice: function (values, arg) {
    return arg[1] > values.length ? values : values.slice(arg[0], arg[1]);
  }
};
